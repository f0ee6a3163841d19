//! Traces written together: properties of one are not applied to another.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use tracepoint_store::{IngestOptions, StoreError};

use crate::read_back::{cell, event_files, files, rows, stored};
use tracepoint_query_tests::traces::{EventKind, Field, Random, TraceSpec};

const BEGIN_NS: u64 = 1_795_430_400_000_000_000;
const DAY_NS: u64 = 86_400_000_000_000;

/// A trace of one event with an enumeration field.
fn write(directory: &Path, number: u8, begin_ns: u64) -> u64 {
    let made = TraceSpec {
        uuid: [number; 16],
        host: "h".to_owned(),
        session: format!("s{number}"),
        begin_ns,
        step_ns: 10,
        kinds: vec![EventKind { name: "shop:state".to_owned(), fields: vec![("state".to_owned(), Field::Enum)] }],
        streams: 1,
        packets: 3,
        packet_events: 50,
        loses: false,
        contexts: false,
    };
    made.write(directory, &mut Random(u64::from(number)))
}

/// Changes the metadata of a trace that has no checksums.
fn patch(directory: &Path, from: &str, to: &str) {
    let path = directory.join("metadata");
    let text = fs::read_to_string(&path).expect("metadata");
    assert!(text.contains(from), "{from}: {text}");
    let changed = text.replace(from, to);
    let lines = changed.split_inclusive('\n').filter(|line| !line.starts_with("/*crc32c "));
    fs::write(&path, lines.collect::<String>()).expect("a file");
}

#[test]
fn labels_are_those_of_their_own_trace() {
    let place = tempfile::tempdir().expect("a directory");
    let (traces, store) = (place.path().join("traces"), place.path().join("store"));
    let one_session = |number: u8| patch(&traces.join(number.to_string()), &format!("\"s{number}\""), "\"s\"");
    let events: u64 = [1, 2].map(|number| write(&traces.join(number.to_string()), number, BEGIN_NS)).iter().sum();
    [1, 2].into_iter().for_each(one_session);
    // The second program's enumeration has other labels; its columns are the same.
    patch(&traces.join("2"), "Idle = 0, \"Run now\" = 1, Stop = 9", "Stop = 0, Idle = 1, \"Run now\" = 9");
    assert_eq!(stored(&store, &traces, IngestOptions::default()).expect("it is written").events, events);
    let partitions: BTreeSet<_> = event_files(&store).iter().map(|file| file.parent().map(Path::to_owned)).collect();
    assert_eq!(partitions.len(), 1, "the columns are the same: {partitions:?}");
    let together: Vec<_> = event_files(&store).iter().flat_map(|file| rows(file)).collect();
    for number in [1_u8, 2] {
        let alone = place.path().join(format!("alone{number}"));
        stored(&alone, &traces.join(number.to_string()), IngestOptions::default()).expect("it is written");
        let stream = |row: &&crate::read_back::Row| cell(row, "stream").starts_with(&format!("{number:02x}"));
        let states = |rows: &[crate::read_back::Row]| -> Vec<String> {
            let mut states: Vec<_> =
                rows.iter().filter(stream).map(|row| format!("{} {}", cell(row, "seq"), cell(row, "state"))).collect();
            states.sort();
            states
        };
        let rows: Vec<_> = event_files(&alone).iter().flat_map(|file| rows(file)).collect();
        assert_eq!(states(&together), states(&rows));
    }
}

#[test]
fn an_account_is_kept_as_long_as_its_own_events() {
    let place = tempfile::tempdir().expect("a directory");
    let (traces, store) = (place.path().join("traces"), place.path().join("store"));
    write(&traces.join("1"), 1, BEGIN_NS);
    write(&traces.join("2"), 2, BEGIN_NS + 3 * DAY_NS);
    stored(&store, &traces, IngestOptions::default()).expect("they are written");
    let days = |directory: &Path| -> BTreeSet<_> {
        let day_and_session = |file: &std::path::PathBuf| {
            let keys = file.strip_prefix(directory).expect("inside").components().map(|key| key.as_os_str().to_owned());
            keys.filter(|key| !key.to_string_lossy().starts_with("host=")).take(2).collect::<Vec<_>>()
        };
        files(directory)
            .iter()
            .map(day_and_session)
            .filter(|keys| keys[0].to_string_lossy().starts_with("day="))
            .collect()
    };
    assert_eq!(days(&store.join("account")), days(&store));
    assert_eq!(days(&store).len(), 2);
}

#[test]
fn a_trace_that_is_given_twice_is_refused() {
    let place = tempfile::tempdir().expect("a directory");
    let (traces, store) = (place.path().join("traces"), place.path().join("store"));
    for copy in ["a", "b"] {
        write(&traces.join(copy), 1, BEGIN_NS);
        patch(&traces.join(copy), "env { ", "env { tracer_name = \"tracepoint\"; ");
    }
    let refused = stored(&store, &traces, IngestOptions::default());
    assert!(matches!(&refused, Err(StoreError::GivenTwice(twice)) if twice.first != twice.second), "{refused:?}");
    assert_eq!(event_files(&store).len(), 0);
    fs::remove_dir_all(traces.join("b")).expect("a directory");
    stored(&store, &traces, IngestOptions::default()).expect("it is written");
}
