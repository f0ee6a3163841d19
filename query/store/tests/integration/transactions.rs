//! A trace is in a store as a whole or not at all, whatever a writer leaves behind.

use std::fs;
use std::path::{Path, PathBuf};

use tracepoint_reader::Trace;
use tracepoint_store::{IngestOptions, Store, ingest};

use crate::made::{Made, Random};
use crate::read_back::{event_files, files, rows, stored};
use crate::seed;

fn transactions(store: &Path) -> PathBuf {
    store.join(".tracepoint/transactions")
}

fn count(directory: &Path) -> usize {
    fs::read_dir(directory).expect("a directory").count()
}

fn made(place: &Path, random: &mut Random) -> (PathBuf, u64) {
    let trace = place.join("trace");
    let events = Made { loses: false, ..Made::random(random) }.write(&trace, random);
    (trace, events)
}

#[test]
fn nothing_is_visible_before_the_end() {
    let mut random = Random(seed::seed());
    let place = tempfile::tempdir().expect("a directory");
    let (trace, events) = made(place.path(), &mut random);
    let store = Store::create(&place.path().join("store")).expect("a store");
    let mut options = IngestOptions::default();
    options.row_group_rows = 1;
    let trace = Trace::open(&trace).expect("a trace");
    let mut seen = 0;
    ingest(&store, &trace, options, &mut |_, _| {
        assert_eq!(files(store.path()), Vec::<PathBuf>::new());
        seen += count(&transactions(store.path()));
        // Another process that opens the store leaves the transaction alone.
        Store::open(store.path()).expect("a store");
    })
    .expect("it is written");
    assert!(seen > 0, "the files were somewhere");
    assert_eq!(event_files(store.path()).iter().map(|file| rows(file).len() as u64).sum::<u64>(), events);
    assert_eq!(count(&transactions(store.path())), 0);
}

#[test]
fn a_failed_write_leaves_nothing() {
    let mut random = Random(seed::seed());
    let place = tempfile::tempdir().expect("a directory");
    let (trace, _) = made(place.path(), &mut random);
    let store = place.path().join("store");
    Store::create(&store).expect("a store");
    // No name of an event can be registered.
    let layouts = store.join(".tracepoint/layouts");
    fs::remove_dir(&layouts).expect("it is empty");
    assert!(stored(&store, &trace, IngestOptions::default()).is_err());
    assert_eq!((files(&store), count(&transactions(&store))), (Vec::new(), 0));
    fs::create_dir(&layouts).expect("a directory");
    stored(&store, &trace, IngestOptions::default()).expect("it is written now");
}

#[test]
fn what_a_dead_writer_left_is_completed_or_deleted() {
    let place = tempfile::tempdir().expect("a directory");
    let store = place.path().join("store");
    Store::create(&store).expect("a store");
    let leave = |id: &str, commit: Option<&str>| {
        let directory = transactions(&store).join(id);
        fs::create_dir(&directory).expect("a directory");
        fs::write(directory.join("lock"), "").expect("a file");
        fs::write(directory.join("0"), id).expect("a file");
        if let Some(commit) = commit {
            fs::write(directory.join("commit.json"), commit).expect("a file");
        }
    };
    fs::create_dir_all(store.join("day=2026-11-20/host=h")).expect("a directory");
    fs::write(store.join("day=2026-11-20/host=h/part-old.parquet"), "old").expect("a file");
    leave("dead", None);
    // The second file was renamed before the writer died.
    leave(
        "valid",
        Some(
            r#"{"add": [["0", "day=2026-11-23/host=h/part-a.parquet"], ["1", "day=2026-11-23/host=h/part-b.parquet"]],
        "remove": ["day=2026-11-20", "day=2026-11-19"]}"#,
        ),
    );
    Store::open(&store).expect("a store");
    assert_eq!(files(&store), [store.join("day=2026-11-23/host=h/part-a.parquet")]);
    assert_eq!(fs::read_to_string(&files(&store)[0]).expect("a file"), "valid");
    assert_eq!(count(&transactions(&store)), 0);
}
