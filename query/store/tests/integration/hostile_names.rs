//! Names that would escape from the store, or collide with others.

use std::collections::BTreeSet;

use tracepoint_store::IngestOptions;

use crate::read_back::{cell, event_files, files, rows, stored, table};
use tracepoint_query_tests::traces::{EventKind, Field, Random, TraceSpec};

#[test]
fn hostile_names_stay_inside_and_apart() {
    let long = "ä".repeat(150);
    let names = [
        "../../outside",
        "/etc/passwd",
        "a=b",
        "day=2026-11-23",
        "..",
        "new\nline",
        "%2E%2E",
        "__HIVE_DEFAULT_PARTITION__",
        "A",
        "a",
        &long,
        &format!("{long}!"),
        "x:y",
        "#7",
    ];
    let kind = |name: &&str| EventKind {
        name: (*name).to_owned(),
        fields: vec![("n".to_owned(), Field::Number("uint64_t", 8))],
    };
    let made = TraceSpec {
        uuid: [7; 16],
        host: "../h=o/st".to_owned(),
        session: "s\n/..".to_owned(),
        begin_ns: 1_795_430_400_000_000_000,
        step_ns: 10,
        kinds: names.iter().map(kind).collect(),
        streams: 1,
        packets: 20,
        packet_events: 50,
        loses: false,
        contexts: false,
    };
    let place = tempfile::tempdir().expect("a directory");
    let (trace, store) = (place.path().join("trace"), place.path().join("store"));
    let events = made.write(&trace, &mut Random(1));
    let before: BTreeSet<_> = files(place.path()).into_iter().collect();
    let summary = stored(&store, &trace, IngestOptions::default()).expect("it is written");
    assert_eq!((summary.events, summary.parts), (events, names.len() as u64));
    let new = files(place.path()).into_iter().filter(|file| !before.contains(file));
    assert!(new.into_iter().all(|file| file.starts_with(&store)), "outside of the store");
    let parts = event_files(&store);
    // day, host, session, event, file: no name has created a further directory.
    assert!(parts.iter().all(|part| part.strip_prefix(&store).expect("inside").components().count() == 5), "{parts:?}");
    assert!(parts.iter().all(|part| part.file_name().expect("a name").to_string_lossy().ends_with(".parquet")));
    let all: Vec<_> = parts.iter().flat_map(|part| rows(part)).collect();
    assert_eq!(all.len() as u64, events);
    assert!(all.iter().all(|row| cell(row, "host") == "../h=o/st"), "the host is told as it is");
    let account: BTreeSet<_> = table(&store, "account").iter().map(|row| cell(row, "name").to_owned()).collect();
    assert!(names.iter().all(|name| account.contains(*name)), "{account:?}");
}
