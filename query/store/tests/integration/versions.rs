//! Events with the same name and different fields, from different versions of a program.

use std::collections::BTreeSet;
use std::path::Path;

use tracepoint_store::{IngestOptions, StoreError};

use crate::read_back::{event_files, rows, stored};
use tracepoint_query_tests::traces::{EventKind, Field, Random, TraceSpec};

/// A trace of one kind of event.
fn trace(place: &Path, version: u8, name: &str, fields: &[(&str, &'static str, usize)]) -> std::path::PathBuf {
    let fields = fields.iter().map(|(name, ty, size)| ((*name).to_owned(), Field::Number(ty, *size))).collect();
    let made = TraceSpec {
        uuid: [version; 16],
        host: "h".to_owned(),
        session: "s".to_owned(),
        begin_ns: 1_795_430_400_000_000_000,
        step_ns: 10,
        kinds: vec![EventKind { name: name.to_owned(), fields }],
        streams: 1,
        packets: 2,
        packet_events: 9,
        loses: false,
        contexts: false,
    };
    let path = place.join(format!("trace{version}"));
    made.write(&path, &mut Random(u64::from(version)));
    path
}

/// The partitions of events, each with the name of its last column.
fn partitions(store: &Path) -> BTreeSet<(String, String)> {
    let partition = |file: &std::path::PathBuf| {
        let event = file.parent().expect("a partition").file_name().expect("a name").to_string_lossy().into_owned();
        (event, rows(file)[0].last().expect("columns").0.clone())
    };
    event_files(store).iter().map(partition).collect()
}

#[test]
fn an_event_whose_fields_change_gets_a_number() {
    let place = tempfile::tempdir().expect("a directory");
    let store = place.path().join("store");
    let (a, b) = (("a", "uint32_t", 4), ("b", "uint64_t", 8));
    let narrow = ("a", "uint16_t", 2);
    for (version, name, fields) in [
        (1, "shop:sold", vec![a]),
        (2, "shop:sold", vec![a, b]),
        // The first layout again.
        (3, "shop:sold", vec![a]),
        // A number that the tracer assigned in another process has no meaning here.
        (4, "shop:sold#7", vec![a, b]),
        (5, "shop:sold", vec![narrow]),
    ] {
        stored(&store, &trace(place.path(), version, name, &fields), IngestOptions::default()).expect("it is written");
    }
    let expected = [("event=shop%3Asold", "a"), ("event=shop%3Asold%232", "b"), ("event=shop%3Asold%233", "a")];
    assert_eq!(partitions(&store), expected.map(|(event, column)| (event.to_owned(), column.to_owned())).into());
    assert_eq!(event_files(&store).len(), 5);
}

#[test]
fn a_trace_is_stored_once() {
    let place = tempfile::tempdir().expect("a directory");
    let store = place.path().join("store");
    let trace = trace(place.path(), 1, "x:y", &[("a", "uint32_t", 4)]);
    stored(&store, &trace, IngestOptions::default()).expect("it is written");
    let again = stored(&store, &trace, IngestOptions::default());
    assert!(matches!(&again, Err(StoreError::AlreadyStored(_, trace)) if trace.starts_with("01010101-")), "{again:?}");
    assert_eq!(event_files(&store).len(), 1);
}

#[test]
fn a_directory_with_other_files_is_no_store() {
    let place = tempfile::tempdir().expect("a directory");
    let trace = trace(place.path(), 1, "x:y", &[("a", "uint32_t", 4)]);
    let refused = stored(place.path(), &trace, IngestOptions::default());
    assert!(matches!(refused, Err(StoreError::NotAStore { .. })), "{refused:?}");
    assert!(!place.path().join(".tracepoint").exists(), "nothing is left in it");
}
