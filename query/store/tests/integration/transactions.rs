//! A trace is stored completely or not at all, whatever state a writer leaves.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use tracepoint_reader::Trace;
use tracepoint_store::{IngestOptions, Store, ingest};

use crate::read_back::{event_files, files, rows, stored};
use crate::seed;
use tracepoint_query_tests::traces::{Random, TraceSpec};

fn transactions(store: &Path) -> PathBuf {
    store.join(".tracepoint/transactions")
}

fn count(directory: &Path) -> usize {
    fs::read_dir(directory).expect("a directory").count()
}

fn made(place: &Path, random: &mut Random) -> (PathBuf, u64) {
    let trace = place.join("trace");
    let events = TraceSpec { loses: false, ..TraceSpec::random(random) }.write(&trace, random);
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
        // Another process that opens the store does not touch the transaction.
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
    // Make it impossible to register names of events.
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

#[test]
fn what_cannot_be_placed_is_not_committed() {
    let mut random = Random(seed::seed());
    let place = tempfile::tempdir().expect("a directory");
    let (trace, store) = (place.path().join("trace"), place.path().join("store"));
    let (begin_ns, step_ns) = (1_795_430_400_000_000_000, 1000);
    let events =
        TraceSpec { loses: false, begin_ns, step_ns, ..TraceSpec::random(&mut random) }.write(&trace, &mut random);
    Store::create(&store).expect("a store");
    // Block the directory of that day, so that the write fails as on a full disk.
    let in_the_way = store.join("day=2026-11-23");
    fs::write(&in_the_way, "").expect("a file");
    assert!(stored(&store, &trace, IngestOptions::default()).is_err());
    assert_eq!((files(&store), count(&transactions(&store))), (vec![in_the_way.clone()], 0));
    Store::open(&store).expect("nothing is left to complete");
    fs::remove_file(in_the_way).expect("a file");
    stored(&store, &trace, IngestOptions::default()).expect("it is written now");
    assert_eq!(event_files(&store).iter().map(|file| rows(file).len() as u64).sum::<u64>(), events);
}

#[test]
fn a_store_is_opened_while_others_give_up() {
    let mut random = Random(seed::seed());
    let place = tempfile::tempdir_in("/dev/shm").expect("a directory");
    let (trace, _) = made(place.path(), &mut random);
    let path = place.path().join("store");
    let store = Store::create(&path).expect("a store");
    fs::remove_dir(path.join(".tracepoint/layouts")).expect("it is empty");
    let trace = Trace::open(&trace).expect("a trace");
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    Store::open(&path).expect("what is being deleted is no error");
                }
            });
        }
        for _ in 0..300 {
            assert!(ingest(&store, &trace, IngestOptions::default(), &mut |_, _| {}).is_err());
        }
        is_over.store(true, Ordering::Relaxed);
    });
    assert_eq!(count(&transactions(&path)), 0);
}

#[test]
fn many_make_a_store_at_once() {
    let mut random = Random(seed::seed());
    for _ in 0..50 {
        let place = tempfile::tempdir_in("/dev/shm").expect("a directory");
        let store = place.path().join("new/store");
        let traces: Vec<_> = (0..4).map(|number| place.path().join(number.to_string())).collect();
        let events: u64 = traces
            .iter()
            .map(|path| TraceSpec { loses: false, ..TraceSpec::random(&mut random) }.write(path, &mut random))
            .sum();
        let start = Barrier::new(traces.len());
        thread::scope(|scope| {
            for trace in &traces {
                scope.spawn(|| {
                    let trace = Trace::open(trace).expect("a trace");
                    start.wait();
                    let made = Store::create(&store).expect("a store");
                    ingest(&made, &trace, IngestOptions::default(), &mut |_, _| {}).expect("it is written");
                });
            }
        });
        assert_eq!(event_files(&store).iter().map(|file| rows(file).len() as u64).sum::<u64>(), events);
    }
}
