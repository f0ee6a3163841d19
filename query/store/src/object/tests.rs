//! A store of objects in memory: a trace is stored completely and once, or not at all, whichever request is the last one of a process, and whatever
//! other processes do at the same time.

mod access;
mod broken;
#[path = "../../../../tests/support/seed.rs"]
mod seed;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use object_store::memory::InMemory;
use object_store::multipart::MultipartStore;
use object_store::path::Path as ObjectPath;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use tempfile::TempDir;
use tracepoint_reader::Trace;

use super::record::Record;
use super::{Client, ObjectBackend};
use crate::backend::Contents;
use crate::{IngestOptions, Retention, Store, StoreError, compact, ingest, retain};
use broken::Broken;
use tracepoint_query_tests::traces::{EventKind, Field, Random, TraceSpec};

const HOUR: u64 = 3_600_000_000_000;
const ALL: usize = usize::MAX;

fn client(objects: Broken) -> Client {
    Client::new(Arc::new(objects), ObjectPath::from("a/prefix"), "memory://a/prefix", Duration::from_secs(1))
        .expect("a client")
}

/// The objects, and operations of processes on them.
#[derive(Clone, Default)]
struct Bucket(Arc<InMemory>);

impl Bucket {
    /// A process that can send `requests` requests. The last one gets no response, and is executed only if `is_last_done`.
    fn client(&self, requests: usize, is_last_done: bool) -> Client {
        client(Broken::new(Arc::clone(&self.0), requests, is_last_done))
    }

    fn store(&self, requests: usize, is_last_done: bool) -> Result<Store, StoreError> {
        Store::of(Box::new(ObjectBackend { client: self.client(requests, is_last_done) })).created()
    }

    /// The store, for a process without write permission.
    fn read_only(&self) -> Store {
        let client = client(Broken::read_only(Arc::clone(&self.0)));
        Store::of(Box::new(ObjectBackend { client }))
    }

    fn opened(&self) -> Store {
        self.store(ALL, false).expect("a store")
    }

    /// The rows of events, and their number.
    fn rows(&self) -> (BTreeSet<String>, usize) {
        let store = self.opened();
        let (mut found, mut count) = (BTreeSet::new(), 0);
        let parts = store.backend.parts().expect("files").into_iter();
        for file in
            parts.filter(|(directory, _)| directory.to_string_lossy().starts_with("day=")).flat_map(|(_, files)| files)
        {
            let Contents::Bytes(bytes) = store.backend.contents(&file).expect("a file") else { panic!("an object") };
            for batch in ParquetRecordBatchReaderBuilder::try_new(bytes).expect("Parquet").build().expect("rows") {
                let batch = batch.expect("rows");
                (0..batch.num_rows()).for_each(|row| _ = found.insert(format!("{:?}", batch.slice(row, 1))));
                count += batch.num_rows();
            }
        }
        (found, count)
    }
}

/// A trace of two days of 2020 with two kinds of events, and their number.
fn trace(place: &TempDir, name: &str, random: &mut Random) -> (PathBuf, usize) {
    let kind =
        |name: &str| EventKind { name: name.to_owned(), fields: vec![("n".to_owned(), Field::Number("uint64_t", 8))] };
    let (begin_ns, step_ns) = (1_600_000_000_000_000_000, 2 * HOUR);
    let kinds = vec![kind("made:a"), kind("made:b")];
    let made = TraceSpec {
        kinds,
        begin_ns,
        step_ns,
        streams: 1,
        packets: 4,
        packet_events: 9,
        loses: false,
        ..TraceSpec::random(random)
    };
    let path = place.path().join(name);
    let events = made.write(&path, random);
    (path, events as usize)
}

fn write(store: &Store, trace: &Path) -> Result<u64, StoreError> {
    let mut options = IngestOptions::default();
    // Write several files for some partitions.
    (options.row_group_rows, options.open_parts) = (5, 1);
    let trace = Trace::open(trace).expect("a trace");
    ingest(store, &trace, options, &mut |_, _| {}).map(|written| written.events)
}

#[test]
fn a_writer_that_dies_at_any_request_leaves_all_or_nothing() {
    let mut random = Random(seed::seed());
    let place = tempfile::tempdir().expect("a directory");
    let (trace, events) = trace(&place, "trace", &mut random);
    for is_last_done in [false, true] {
        let (mut requests, mut none, mut all) = (0, 0, 0);
        loop {
            let bucket = Bucket::default();
            let written = bucket.store(requests, is_last_done).and_then(|store| write(&store, &trace));
            let client = bucket.client(ALL, false);
            if !client.block(client.records()).expect("they are read").is_empty() {
                let (parts, _) = client.block(client.parts()).expect("they are listed");
                assert!(parts.is_empty(), "a compaction leaves files alone while their transaction is not over");
            }
            let (rows, count) = bucket.rows();
            assert_eq!(rows.len(), count, "each once, after {requests} requests");
            assert!(count == 0 || count == events, "{count} of {events} after {requests} requests");
            (none, all) = if count == 0 { (none + 1, all) } else { (none, all + 1) };
            assert!(written.is_err() || count == events);
            match write(&bucket.opened(), &trace) {
                Ok(_) => assert_eq!(count, 0, "after {requests} requests"),
                Err(StoreError::AlreadyStored { .. }) => assert_eq!(count, events, "after {requests} requests"),
                Err(error) => panic!("after {requests} requests: {error}"),
            }
            assert_eq!(bucket.rows().1, events, "after {requests} requests");
            if written.is_ok() {
                break;
            }
            requests += 1;
        }
        println!("{none} times none, {all} times all");
        assert!(none > 20 && all > 5);
    }
}

#[test]
fn a_trace_that_several_write_at_once_is_stored_once() {
    let mut random = Random(seed::seed());
    let place = tempfile::tempdir().expect("a directory");
    let (trace, events) = trace(&place, "trace", &mut random);
    for round in 0..40 {
        let bucket = Bucket::default();
        bucket.opened();
        // In every other round, one of the processes dies.
        let requests = [ALL, ALL, if round % 2 == 0 { ALL } else { random.below(120) as usize }];
        let results: Vec<_> = thread::scope(|scope| {
            let run = |requests| {
                scope.spawn({
                    let (bucket, trace) = (bucket.clone(), &trace);
                    move || bucket.store(requests, true).and_then(|store| write(&store, trace))
                })
            };
            requests.map(run).into_iter().map(|thread| thread.join().expect("no panic")).collect()
        });
        let (rows, count) = bucket.rows();
        assert_eq!((rows.len(), count), (events, events), "{results:?}");
        let written = results.iter().filter(|result| result.is_ok()).count();
        assert!(written <= 1, "{results:?}");
        assert!(matches!(write(&bucket.opened(), &trace), Err(StoreError::AlreadyStored { .. })));
    }
}

#[test]
fn a_compaction_that_dies_at_any_request_keeps_each_row_once() {
    let mut random = Random(seed::seed());
    let place = tempfile::tempdir().expect("a directory");
    let traces = ["one", "two"].map(|name| trace(&place, name, &mut random));
    let events: usize = traces.iter().map(|(_, events)| events).sum();
    for is_last_done in [false, true] {
        for requests in 0.. {
            let bucket = Bucket::default();
            for (trace, _) in &traces {
                write(&bucket.opened(), trace).expect("it is written");
            }
            let before = bucket.rows();
            assert_eq!(before.1, events);
            let done = bucket.store(requests, is_last_done).and_then(|store| compact(&store, 1 << 20));
            assert_eq!(bucket.rows(), before, "after {requests} requests");
            // Opening waits until the dead process has lost its lease.
            if done.is_ok() || requests % 25 == 24 {
                compact(&bucket.opened(), 1 << 20).expect("the rest is compacted");
                assert_eq!(bucket.rows(), before, "after {requests} requests");
                let parts = bucket.opened().backend.parts().expect("files");
                assert!(parts.iter().all(|(_, files)| files.len() == 1));
            }
            if done.is_ok() {
                break;
            }
        }
    }
}

#[test]
fn a_retention_that_dies_at_any_request_is_repeated() {
    let mut random = Random(seed::seed());
    let place = tempfile::tempdir().expect("a directory");
    let (trace, events) = trace(&place, "trace", &mut random);
    for requests in (0..).step_by(11) {
        let bucket = Bucket::default();
        write(&bucket.opened(), &trace).expect("it is written");
        let done = bucket.store(requests, requests % 2 == 0).and_then(|store| retain(&store, Retention::Days(1)));
        retain(&bucket.opened(), Retention::Days(1)).expect("the rest is removed");
        assert_eq!(bucket.rows().1, 0);
        // If files were left, the second run has released the trace as well.
        match write(&bucket.opened(), &trace) {
            Ok(_) => assert_eq!(bucket.rows().1, events),
            Err(error) => panic!("after {requests} requests: {error}"),
        }
        if done.is_ok() {
            break;
        }
    }
}

#[test]
fn a_trace_that_is_written_while_days_are_removed_is_there_or_can_be_written() {
    let mut random = Random(seed::seed());
    let place = tempfile::tempdir().expect("a directory");
    for round in 0..40 {
        let bucket = Bucket::default();
        let [(first, _), (second, events)] = [0, 1].map(|one| trace(&place, &format!("{round}.{one}"), &mut random));
        write(&bucket.opened(), &first).expect("it is written");
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    retain(&bucket.opened(), Retention::Days(1)).expect("old days are removed");
                }
            });
            let result = write(&bucket.opened(), &second);
            is_over.store(true, Ordering::Relaxed);
            result.expect("it is written");
        });
        let count = bucket.rows().1;
        assert!(count == 0 || count >= events, "{count} of {events}");
        let again = write(&bucket.opened(), &second);
        assert_eq!(again.is_err(), count > 0, "{count} rows; {again:?}");
    }
}

#[test]
fn uploads_that_are_aborted_by_others_undo_the_whole_trace() {
    let mut random = Random(seed::seed());
    let place = tempfile::tempdir().expect("a directory");
    let (trace, events) = trace(&place, "trace", &mut random);
    let mut tried = 0;
    for requests in 0.. {
        let bucket = Bucket::default();
        let written = bucket.store(requests, true).and_then(|store| write(&store, &trace));
        let client = bucket.client(ALL, false);
        let records = client.block(client.records()).expect("they are read");
        if let Some((_, Record::Committed { add, .. })) = records.first() {
            tried += 1;
            // Abort an upload with events, as a rule of the bucket may.
            let one = add.iter().rfind(|one| one.path.starts_with("day=")).expect("a file");
            drop(client.block(bucket.0.abort_multipart(&ObjectPath::default(), &one.id)));
            let count = bucket.rows().1;
            assert!(count == 0 || count == events, "{count} of {events}");
            assert_eq!(write(&bucket.opened(), &trace).is_ok(), count == 0);
            assert_eq!(bucket.rows().1, events);
        }
        if written.is_ok() {
            break;
        }
    }
    assert!(tried > 3, "{tried}");
}
