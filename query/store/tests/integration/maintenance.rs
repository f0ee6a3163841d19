//! Compaction keeps all rows, and retention removes days.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use tracepoint_reader::Trace;
use tracepoint_store::{IngestOptions, Retention, Store, compact, ingest, retain};

use crate::read_back::{event_files, files, rows, stored};
use crate::seed;
use tracepoint_query_tests::traces::{Random, TraceSpec};

const DAY: u64 = 86_400_000_000_000;

/// All rows of a store, each with its directory.
fn contents(store: &Path) -> BTreeSet<String> {
    let files = files(store);
    let row = |file: &PathBuf| {
        let directory = file.parent().expect("a directory").display().to_string();
        rows(file).into_iter().map(move |row| format!("{directory} {row:?}"))
    };
    files.iter().flat_map(row).collect()
}

/// A store of several traces, days apart, in small files.
fn filled(store: &Path, random: &mut Random) {
    let mut kinds = TraceSpec::random(random).kinds;
    for number in 0..4 {
        let mut made = TraceSpec {
            begin_ns: 1_795_430_400_000_000_000 + number % 2 * DAY,
            step_ns: 1000,
            ..TraceSpec::random(random)
        };
        std::mem::swap(&mut made.kinds, &mut kinds);
        let trace = tempfile::tempdir().expect("a directory");
        made.write(&trace.path().join("trace"), random);
        let mut options = IngestOptions::default();
        (options.row_group_rows, options.open_parts) = (3, 1);
        stored(store, &trace.path().join("trace"), options).expect("it is written");
        std::mem::swap(&mut made.kinds, &mut kinds);
    }
}

#[test]
fn compaction_keeps_the_rows() {
    let mut random = Random(seed::seed());
    for _ in 0..5 {
        let place = tempfile::tempdir().expect("a directory");
        let store = place.path().join("store");
        filled(&store, &mut random);
        let (before, parts) = (contents(&store), files(&store).len() as u64);
        let store = Store::open(&store).expect("a store");
        let done = compact(&store, 1 << 20).expect("it is compacted");
        assert_eq!(contents(store.path()), before);
        assert_eq!(files(store.path()).len() as u64, parts - done.files_before + done.files_after);
        let directories: BTreeSet<_> =
            files(store.path()).iter().filter_map(|file| Some(file.parent()?.to_owned())).collect();
        assert_eq!(directories.len(), files(store.path()).len(), "one file in each");
        assert!(done.files_before > done.files_after && done.partitions == done.files_after, "{done:?}");
        let again = compact(&store, 1 << 20).expect("nothing is left to do");
        assert_eq!(again.files_before, 0);
        // Files that are large enough stay unchanged.
        assert_eq!(compact(&store, 1).expect("nothing is smaller").files_before, 0);
    }
}

#[test]
fn retention_removes_the_oldest_days_of_all_tables() {
    let mut random = Random(seed::seed());
    let place = tempfile::tempdir().expect("a directory");
    let path = place.path().join("store");
    filled(&path, &mut random);
    let store = Store::open(&path).expect("a store");
    let size = |path: &Path| files(path).iter().map(|file| file.metadata().expect("a file").len()).sum::<u64>();
    let all = retain(&store, Retention::Bytes(u64::MAX)).expect("nothing to do");
    assert_eq!((all.removed_days.len(), all.bytes), (0, size(&path)));
    assert_eq!(retain(&store, Retention::Days(40_000)).expect("nothing to do").removed_files, 0);
    let kept = retain(&store, Retention::Bytes(1)).expect("one day is removed");
    assert_eq!(kept.removed_days, ["2026-11-23"]);
    assert_eq!((kept.bytes, kept.bytes + kept.removed_bytes), (size(&path), all.bytes));
    let stay = files(&path);
    assert!(
        !stay.is_empty() && stay.iter().all(|file| file.display().to_string().contains("day=2026-11-24")),
        "{stay:?}"
    );
    assert!(!event_files(&path).is_empty());
}

/// Copies a directory.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a directory");
    for entry in fs::read_dir(from).expect("a directory").map(|entry| entry.expect("an entry")) {
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if from.is_dir() { copy(&from, &to) } else { _ = fs::copy(from, to).expect("a file") }
    }
}

#[test]
fn a_compaction_that_died_is_not_done_twice() {
    let mut random = Random(seed::seed());
    let place = tempfile::tempdir().expect("a directory");
    let (path, other) = (place.path().join("store"), place.path().join("other"));
    filled(&path, &mut random);
    let store = Store::open(&path).expect("a store");
    let before = contents(&path);
    let count = |path: &Path| files(path).iter().map(|file| rows(file).len()).sum::<usize>();
    let all = count(&path);
    // Compact a copy, to learn the result of a compaction.
    copy(&path, &other);
    compact(&Store::open(&other).expect("a store"), 1 << 20).expect("it is compacted");
    let relative = |root: &Path| -> BTreeSet<PathBuf> {
        files(root).iter().filter_map(|file| Some(file.strip_prefix(root).ok()?.to_owned())).collect()
    };
    let (old, new) = (relative(&path), relative(&other));
    // Fake the same compaction by a process that died after its commit, with this store already open.
    let transaction = path.join(".tracepoint/transactions/dead");
    fs::create_dir(&transaction).expect("a directory");
    fs::write(transaction.join("lock"), "").expect("a file");
    let add: Vec<_> = new.difference(&old).enumerate().map(|(number, file)| (number.to_string(), file)).collect();
    for (number, file) in &add {
        fs::copy(other.join(file), transaction.join(number)).expect("a file");
    }
    let remove: Vec<_> = old.difference(&new).collect();
    assert!(remove.len() > add.len() && !add.is_empty());
    let commit = serde_json::json!({ "add": add, "remove": remove });
    fs::write(transaction.join("commit.json"), commit.to_string()).expect("a file");
    compact(&store, 1 << 20).expect("nothing is left to do");
    assert_eq!((count(&path), contents(&path)), (all, before));
}

#[test]
fn a_trace_that_is_written_while_days_are_removed_is_there_or_can_be_written() {
    let mut random = Random(seed::seed());
    let place = tempfile::tempdir_in("/dev/shm").expect("a directory");
    let store = Store::create(&place.path().join("store")).expect("a store");
    let write = |trace: &Path| {
        let trace = Trace::open(trace).expect("a trace");
        ingest(&store, &trace, IngestOptions::default(), &mut |_, _| {})
    };
    for number in 0..60 {
        // Both traces are from one day of 2020, which is removed.
        let [first, second] = [0, 1].map(|one| {
            let path = place.path().join(format!("{number}.{one}"));
            let made = TraceSpec::random(&mut random);
            TraceSpec { begin_ns: 1_600_000_000_000_000_000, step_ns: 1000, ..made }.write(&path, &mut random);
            path
        });
        write(&first).expect("it is written");
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    retain(&store, Retention::Days(1)).expect("old days are removed");
                    thread::sleep(Duration::from_micros(100));
                }
            });
            let result = write(&second);
            is_over.store(true, Ordering::Relaxed);
            result.expect("it is written");
        });
        let rows: usize = event_files(store.path()).iter().map(|file| rows(file).len()).sum();
        let again = write(&second);
        assert_eq!(again.is_err(), rows > 0, "{rows} rows; {again:?}");
        retain(&store, Retention::Days(1)).expect("old days are removed");
    }
}
