//! A recorded trace with losses: events and account agree, and statistics prune.

use std::fs::File;
use std::sync::{Mutex, PoisonError};

use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::file::statistics::Statistics;
use tracepoint::sinks::CtfSink;
use tracepoint::{Channel, Session};
use tracepoint_reader::convert::{ConvertOptions, convert};
use tracepoint_store::IngestOptions;

use crate::read_back::{cell, event_files, rows, stored, table};

tracepoint::define_trace! {
    provider = "losses";

    /// Numbered events.
    numbered(id: u64, value: u32) { id: u64 = id, value: u32 = value }

    /// Never fired.
    silent(id: u64) { id: u64 = id }
}

/// Serialises recordings: a session records all events of the process.
static RECORDING: Mutex<()> = Mutex::new(());

/// Records into a ring that is too small, or large enough. The channel has no overflow, and a full ring does not wake the drain.
fn record(trace: &std::path::Path, ring: usize, events: u64) {
    let _alone = RECORDING.lock().unwrap_or_else(PoisonError::into_inner);
    let channel = Channel::discard(ring).overflow(0).no_wake();
    let session = Session::builder("lossy").events("losses:*").channel(channel);
    let session = session.sink(CtfSink::create(trace).expect("a trace")).in_memory().start().expect("a session");
    (0..events).for_each(|id| tracepoint::trace!(numbered(id, (id % 1000) as u32)));
    session.stop().expect("it ends");
}

#[test]
fn rows_and_account_agree() {
    let place = tempfile::tempdir().expect("a directory");
    for (number, ring) in [64 << 10, 16 << 20].into_iter().enumerate() {
        let (trace, store) = (place.path().join(format!("trace{number}")), place.path().join(format!("store{number}")));
        record(&trace, ring, 300_000);
        let mut options = IngestOptions::default();
        options.row_group_rows = 10_000;
        let summary = stored(&store, &trace, options).expect("it is written");
        let account = table(&store, "account");
        let sum = |scope: &str, what: &str| -> u64 {
            let rows = account.iter().filter(|row| cell(row, "scope") == scope && cell(row, "what") == what);
            rows.map(|row| cell(row, "count").parse::<u64>().expect("a number")).sum()
        };
        let all: Vec<_> = event_files(&store).iter().flat_map(|file| rows(file)).collect();
        assert_eq!(sum("event", "fired"), 300_000);
        assert_eq!(all.len() as u64, sum("event", "stored"));
        assert_eq!(all.len() as u64, sum("event", "recorded"), "nothing is lost behind the rings");
        assert_eq!(sum("event", "recorded") + sum("event", "lost"), 300_000);
        assert_eq!(sum("stream", "stored"), sum("stream", "written"));
        // A loss after the last event is only in the table of losses.
        let before: u64 = all.iter().map(|row| cell(row, "lost_before").parse::<u64>().expect("known")).sum();
        let missing: u64 =
            table(&store, "losses").iter().map(|row| cell(row, "events").parse::<u64>().expect("known")).sum();
        assert!(before <= missing && missing == summary.lost_events, "{before} {missing}");
        assert_eq!(sum("event", "lost"), sum("stream", "discarded"));
        assert!(
            all.iter().all(|row| cell(row, "thread") == "null" && cell(row, "pid") == std::process::id().to_string())
        );
        assert_eq!(missing > 0, number == 0, "{missing} are missing in ring {number}; the first is too small");
    }
}

#[test]
fn a_dt_file_and_events_without_a_clock_are_stored() {
    let place = tempfile::tempdir().expect("a directory");
    let (trace, dt, store) = (place.path().join("trace"), place.path().join("trace.dt"), place.path().join("store"));
    record(&trace, 8 << 20, 5_000);
    convert(&trace, &dt, ConvertOptions::default(), |_| {}).expect("a dt file");
    assert_eq!(stored(&store, &dt, IngestOptions::default()).expect("it is written").events, 5_000);
    let account = table(&store, "account");
    let told = |what: &str| -> Vec<_> {
        let rows = account.iter().filter(|row| cell(row, "what") == what && cell(row, "scope") == "event");
        let mut counts: Vec<_> = rows.map(|row| cell(row, "count")).collect();
        counts.sort_unstable();
        counts
    };
    for what in ["fired", "recorded", "stored"] {
        assert_eq!(told(what), ["0", "5000"], "{what}");
    }

    let timeless = place.path().join("timeless");
    std::fs::create_dir(&timeless).expect("a directory");
    let metadata = "/* CTF 1.8 */ trace { major = 1; minor = 8; byte_order = le; }; stream { id = 0; };
        event { name = \"a\"; id = 0; stream_id = 0; fields := struct { integer { size = 8; align = 8; signed = false; } n; }; };";
    std::fs::write(timeless.join("metadata"), metadata).expect("a file");
    std::fs::write(timeless.join("stream"), [5, 6]).expect("a file");
    assert_eq!(stored(&store, &timeless, IngestOptions::default()).expect("it is written").events, 2);
    let file =
        event_files(&store).into_iter().find(|file| file.starts_with(store.join("day=__HIVE_DEFAULT_PARTITION__")));
    let rows = rows(&file.expect("events without a day"));
    let told: Vec<_> = rows.iter().map(|row| (cell(row, "ts"), cell(row, "seq"), cell(row, "n"))).collect();
    assert_eq!(told, [("null", "0", "5"), ("null", "1", "6")]);
}

#[test]
fn statistics_of_row_groups_tell_where_an_id_is() {
    let place = tempfile::tempdir().expect("a directory");
    let (trace, store) = (place.path().join("trace"), place.path().join("store"));
    record(&trace, 8 << 20, 100_000);
    let mut options = IngestOptions::default();
    options.row_group_rows = 5_000;
    stored(&store, &trace, options).expect("it is written");
    let [file] = &event_files(&store)[..] else { panic!("one file") };
    let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(file).expect("a file")).expect("Parquet");
    let groups = reader.metadata().row_groups();
    assert_eq!(groups.len(), 20);
    let with = |name: &str, value: i64| {
        let column =
            groups[0].columns().iter().position(|column| column.column_path().string() == name).expect("a column");
        let has = |group: &&parquet::file::metadata::RowGroupMetaData| match group.column(column).statistics() {
            Some(Statistics::Int64(range)) => {
                *range.min_opt().expect("a minimum") <= value && value <= *range.max_opt().expect("a maximum")
            }
            other => panic!("{other:?}"),
        };
        groups.iter().filter(has).count()
    };
    assert_eq!([with("id", 77_777), with("id", 100_000)], [1, 0]);
    let time: i64 = cell(&rows(file)[50_000], "ts").parse().expect("a time");
    assert!(with("ts", time) <= 2, "row groups have times of their own");
}

#[test]
fn damaged_metadata_is_counted_and_in_the_table_of_losses() {
    let place = tempfile::tempdir().expect("a directory");
    let (trace, store) = (place.path().join("trace"), place.path().join("store"));
    record(&trace, 8 << 20, 100);
    let metadata = trace.join("metadata");
    let text = std::fs::read_to_string(&metadata).expect("metadata");
    std::fs::write(&metadata, text.replacen("losses:silent", "losses:tilent", 1)).expect("a file");
    let summary = stored(&store, &trace, IngestOptions::default()).expect("it is written");
    assert_eq!((summary.events, summary.damage), (100, 1));
    let losses = table(&store, "losses");
    let told: Vec<_> = losses.iter().map(|row| (cell(row, "what"), cell(row, "reason"))).collect();
    assert!(told.len() == 1 && told[0].0 == "damage" && told[0].1.contains("the metadata is damaged: "), "{told:?}");
}
