//! Compaction keeps all rows, and retention removes days.

use std::collections::BTreeSet;
use std::path::Path;

use tracepoint_store::{IngestOptions, Retention, Store, compact, retain};

use crate::made::{Made, Random};
use crate::read_back::{event_files, files, rows, stored};
use crate::seed;

const DAY: u64 = 86_400_000_000_000;

/// All rows of a store, with the directory that each is in.
fn contents(store: &Path) -> BTreeSet<String> {
    let files = files(store);
    let row = |file: &std::path::PathBuf| {
        let directory = file.parent().expect("a directory").display().to_string();
        rows(file).into_iter().map(move |row| format!("{directory} {row:?}"))
    };
    files.iter().flat_map(row).collect()
}

/// A store of several traces, some days apart, in small files.
fn filled(store: &Path, random: &mut Random) {
    let mut kinds = Made::random(random).kinds;
    for number in 0..4 {
        let mut made =
            Made { begin_ns: 1_795_430_400_000_000_000 + number % 2 * DAY, step_ns: 1000, ..Made::random(random) };
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
        // Files that are large enough stay.
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
