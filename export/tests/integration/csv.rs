//! Comma-separated values, read with Python's module `csv`.

use super::common::{self, number};
use super::decoder::decode;
use serde_json::{Value, json};
use std::fs::File;
use tracepoint_export::Csv;
use tracepoint_reader::Metadata;

fn decoded(recorded: &common::Recorded, selected: impl Fn(&str) -> bool) -> Option<Value> {
    let path = recorded.place.path().join("out.csv");
    let metadata: Vec<&Metadata> = recorded.trace.metadata().map(|(_, metadata)| metadata).collect();
    let fields = Csv::<File>::fields_of(metadata.into_iter(), selected);
    recorded.export(Csv::new(File::create(&path).unwrap(), fields));
    decode("read_csv.py", &path)
}

#[test]
fn every_event_is_a_line_with_its_fields() {
    let recorded = common::shop();
    let Some(decoded) = decoded(&recorded, |_| true) else { return };
    let lines = decoded.as_array().unwrap();
    assert_eq!(lines.len() as u64, recorded.counted());
    for (line, event) in lines.iter().zip(recorded.events()) {
        assert_eq!((&line["type"], &line["event"]), (&json!("event"), &json!(event.name())));
        assert_eq!(line["time_ns"], json!(event.time_ns.to_string()));
        assert_eq!(line["level"], json!(event.level_name().unwrap()), "{line}");
        assert_eq!(line["pid"], json!(std::process::id().to_string()));
        for field in ["span_id", "duration_ns", "n"] {
            let has = event.fields.as_ref().is_some_and(|fields| fields.get(field).is_some());
            let expected = if has { number(event, field).to_string() } else { String::new() };
            assert_eq!(line[field], json!(expected), "{line}");
        }
    }
    let step = lines.iter().find(|line| line["n"] == "1").unwrap();
    let cells = ["depth", "note", "data", "on", "part"].map(|field| step[field].as_str().unwrap());
    assert_eq!(cells, ["-3", "inside, \"quoted\"\n", "01ff", "true", "0.5"]);
}

#[test]
fn losses_are_lines_and_columns_those_of_the_selected_events() {
    let recorded = common::lossy();
    let Some(decoded) = decoded(&recorded, |name| name == "shop:query_end") else { return };
    let lines = decoded.as_array().unwrap();
    let lost: u64 = lines
        .iter()
        .filter(|line| line["type"] == "loss")
        .filter_map(|line| line["lost_events"].as_str()?.parse::<u64>().ok())
        .sum();
    let events = lines.iter().filter(|line| line["type"] == "event").count() as u64;
    assert_eq!((events, lost), (1980, 20));
    let columns: Vec<_> = lines[0].as_object().unwrap().keys().cloned().collect();
    assert!(columns.contains(&"duration_ns".to_owned()) && !columns.contains(&"depth".to_owned()), "{columns:?}");
}
