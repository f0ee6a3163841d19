//! OTLP, decoded with the official descriptors.

use super::common::{self, Recorded, Times};
use super::decoder::decode;
use serde_json::{Value, json};
use std::fs::File;
use tracepoint_export::{Otlp, Summary};

/// Exports in both encodings, and decodes the files.
fn decoded(recorded: &Recorded) -> Option<(Summary, Value)> {
    let path = |name: &str| recorded.place.path().join(name);
    let summary = recorded.export(Otlp::json_lines(File::create(path("out.jsonl")).unwrap()));
    let same = recorded.export(Otlp::protobuf(File::create(path("out.pb")).unwrap()));
    assert_eq!(summary, same);
    let [lines, protobuf] = ["out.jsonl", "out.pb"].map(|name| decode("read_otlp.py", &path(name)));
    assert_eq!(lines, protobuf);
    Some((summary, lines?))
}

#[test]
fn spans_have_their_times_parents_and_fields() {
    let recorded = common::shop();
    let Some((summary, decoded)) = decoded(&recorded) else { return };
    assert_eq!(summary.events, recorded.counted());
    let spans = decoded["spans"].as_array().unwrap();
    let last = recorded.events().map(|event| event.time_ns).max();
    // An open span ends at the end of the trace.
    let expected: Vec<Times> =
        recorded.spans().into_iter().map(|(name, begin, end)| (name, begin, end.or(last))).collect();
    let times =
        |span: &Value| (span["name"].as_str().unwrap().to_owned(), span["begin"].as_i64(), span["end"].as_i64());
    let mut found: Vec<_> = spans.iter().map(times).collect();
    found.sort();
    assert_eq!(found, expected);

    let queries: Vec<_> = spans.iter().filter(|span| span["name"] == "shop:query").collect();
    for query in &queries {
        let is_guessed = query["args"]["tracepoint.parent_guessed"] == json!(true);
        if query["args"]["text"] == "in the open one" {
            assert!(query["parent"] == "" && !is_guessed, "the other one has not ended: {query}");
            continue;
        }
        assert_eq!(is_guessed, query["args"]["text"] != "on another thread", "{query}");
        let parent = spans.iter().find(|span| span["id"] == query["parent"]).unwrap();
        assert_eq!((&parent["name"], &parent["trace"]), (&json!("shop:request"), &query["trace"]));
    }
    let request = spans.iter().find(|span| span["args"]["id"] == 3).unwrap();
    assert_eq!((&request["args"]["path"], &request["args"]["outcome"]), (&json!("/cart"), &json!("ok")));
    assert_eq!(request["resource"]["process.pid"], json!(std::process::id()));
    assert!(request["args"]["thread.id"].as_u64() > Some(0) && request["parent"] == "");
    let open = spans.iter().find(|span| span["args"]["path"] == "/open").unwrap();
    assert!(open["args"]["tracepoint.missing"].as_str().unwrap().contains("open at the end"));

    // Each of the first 19 queries has an event inside; the two events between polls are outside of all spans.
    let events: Vec<_> = spans.iter().flat_map(|span| span["events"].as_array().unwrap()).collect();
    assert_eq!((events.len(), summary.outside, summary.others), (19, 2, 21));
    let mut args =
        json!({"n": 1, "depth": -3, "note": "inside, \"quoted\"\n", "data": "01ff", "on": true, "part": 0.5});
    args["tracepoint.span_guessed"] = json!(true);
    assert_eq!(events[0]["args"], args);
    assert!(queries.iter().filter(|query| query["events"].as_array().unwrap().len() == 1).count() == 19);
}

#[test]
fn losses_are_spans_with_their_number() {
    let recorded = common::lossy();
    let Some((summary, decoded)) = decoded(&recorded) else { return };
    let spans = decoded["spans"].as_array().unwrap();
    assert!(spans.iter().all(|span| span["name"] == "lost events" && span["status"] == json!([2, "events were lost"])));
    assert_eq!(spans.iter().filter_map(|span| span["args"]["lost.events"].as_u64()).sum::<u64>(), 20);
    assert_eq!((summary.lost_events, summary.outside), (20, 1980));
}
