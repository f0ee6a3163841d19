//! Random schemas and values: the values in Parquet equal the reader's, converted here by an independent table of types.

use std::collections::BTreeMap;

use tracepoint_reader::{Event, Item, LossKind, StructValue, Trace, Value};
use tracepoint_store::IngestOptions;

use crate::read_back::{Row, cell, event_files, float, rows, stored};
use crate::seed;
use tracepoint_query_tests::traces::{Random, TraceSpec};

const ANY: [&str; 5] = ["u64", "i64", "f64", "boolean", "text"];

fn expected(value: &Value) -> String {
    match value {
        Value::Int(int) if int.truth => (int.value != 0).to_string(),
        Value::Enum(int, ty) if ty.mappings.iter().all(|one| one.first == one.last) => {
            ty.labels(int.value).next().map_or_else(|| int.value.to_string(), str::to_owned)
        }
        Value::Int(int) | Value::Enum(int, _) => int.value.to_string(),
        Value::F32(number) => float(f64::from(*number)),
        Value::F64(number) => float(*number),
        Value::String(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Value::Bytes(bytes, _) => format!("{bytes:?}"),
        Value::Array(values) => format!("[{}]", values.iter().map(expected).collect::<Vec<_>>().join(", ")),
        Value::Struct(members) if members.is_empty() => "true".to_owned(),
        Value::Struct(members) => {
            let members = shown(members).map(|(name, value)| format!("{name}: {}", expected(value)));
            format!("{{{}}}", members.collect::<Vec<_>>().join(", "))
        }
        Value::Variant(option, _) if **option == *"none" => "null".to_owned(),
        Value::Variant(option, value) if **option == *"some" => expected(value),
        Value::Variant(option, value) => {
            let member = |name: &&str| if **name == **option { expected(value) } else { "null".to_owned() };
            format!("{{{}}}", ANY.iter().map(|name| format!("{name}: {}", member(name))).collect::<Vec<_>>().join(", "))
        }
        other => panic!("{other:?}"),
    }
}

/// The members of a structure, except lengths and tags.
fn shown(members: &StructValue) -> impl Iterator<Item = (&str, &Value)> {
    members.iter().filter(|(name, _)| !name.ends_with("_length") && !name.ends_with("_tag"))
}

/// The columns of an event's row that follow from the event alone.
fn expected_row(event: &Event) -> Row {
    let pair = |name: &str, value: String| (name.to_owned(), value);
    let origin = event.origin();
    let instance = event.stream.instance.expect("made with one");
    let uuid = tracepoint_reader::account::uuid_text(event.stream.metadata.uuid().expect("made with one"));
    let mut row = vec![
        pair("ts", event.time_ns.to_string()),
        pair("host", origin.host.unwrap_or("null").to_owned()),
        pair("pid", origin.pid.expect("made with one").to_string()),
        pair("tid", origin.tid.expect("made with one").to_string()),
        pair("thread", origin.thread.map_or("null".into(), |name| String::from_utf8_lossy(name).into_owned())),
        pair("stream", format!("{uuid}/0/{instance}")),
    ];
    for (name, value) in event.fields.iter().flat_map(shown) {
        let is_taken = ["pid", "TS", "event", "lost_before"].contains(&name);
        row.push((if is_taken { format!("field.{name}") } else { name.to_owned() }, expected(value)));
    }
    let context = event.stream_context.iter().flat_map(StructValue::iter).filter(|(name, _)| *name == "cpu");
    row.extend(context.map(|(name, value)| pair(name, expected(value))));
    row
}

fn check(seed: u64) {
    let mut random = Random(seed);
    let place = tempfile::tempdir().expect("a directory");
    let (trace, store) = (place.path().join("trace"), place.path().join("store"));
    let events = TraceSpec::random(&mut random).write(&trace, &mut random);
    let mut options = IngestOptions::default();
    options.row_group_rows = 1 + random.below(40) as usize;
    options.memory = 1 << (8 + random.below(14));
    options.open_parts = 1 + random.below(3) as usize;
    let summary = stored(&store, &trace, options).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    assert_eq!((summary.events, summary.damage), (events, 0), "seed {seed}");

    // By stream, in the order of the stream.
    let mut wanted: BTreeMap<String, Vec<(Option<u64>, Row)>> = BTreeMap::new();
    let mut missing: BTreeMap<u64, Option<u64>> = BTreeMap::new();
    for item in Trace::open(&trace).expect("a trace").items() {
        match item {
            Item::Event(event) => {
                let row = expected_row(&event);
                let lost = missing.remove(&event.stream.instance.expect("made with one")).unwrap_or(Some(0));
                wanted.entry(cell(&row, "stream").to_owned()).or_default().push((lost, row));
            }
            Item::Loss(loss) => {
                let (LossKind::Events(events) | LossKind::Packets { events, .. }) = loss.kind else {
                    panic!("{loss:?}")
                };
                // The number of events discarded before the first packet is not known.
                let events_lost = missing.entry(loss.stream.instance.expect("made with one")).or_insert(Some(0));
                *events_lost = events_lost.zip(events).map(|(before, events)| before + events);
            }
            other => panic!("{other:?}"),
        }
    }
    let mut found: BTreeMap<String, Vec<(u64, Row)>> = BTreeMap::new();
    for row in event_files(&store).iter().flat_map(|file| rows(file)) {
        let seq = cell(&row, "seq").parse().expect("a number");
        found.entry(cell(&row, "stream").to_owned()).or_default().push((seq, row));
    }
    assert_eq!(found.keys().collect::<Vec<_>>(), wanted.keys().collect::<Vec<_>>(), "seed {seed}");
    for (stream, mut found) in found {
        found.sort_by_key(|(seq, _)| *seq);
        let wanted = &wanted[&stream];
        assert_eq!(found.len(), wanted.len(), "seed {seed}");
        assert!(found.is_sorted_by(|a, b| a.0 < b.0), "seed {seed}: numbers repeat in {stream}");
        for ((_, found), (lost, wanted)) in found.iter().zip(wanted) {
            assert_eq!(
                cell(found, "lost_before"),
                lost.map_or("null".to_owned(), |lost| lost.to_string()),
                "seed {seed}"
            );
            let found: Row = found.iter().filter(|(name, _)| name != "seq" && name != "lost_before").cloned().collect();
            assert_eq!(&found, wanted, "seed {seed}");
        }
    }
}

#[test]
fn any_schema_and_value_is_read_back() {
    let first = seed::seed();
    let count = std::env::var("TRACEPOINT_SCHEMAS").map_or(30, |count| count.parse().expect("a number"));
    (0..count).for_each(|number| check(first.wrapping_add(number)));
}
