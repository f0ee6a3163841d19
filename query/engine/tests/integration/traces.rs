//! A query of a trace has the same answer as on a store that contains only this trace.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use tracepoint_query::arrow::array::RecordBatch;
use tracepoint_query::arrow::util::pretty::pretty_format_batches;
use tracepoint_query::{Engine, EngineOptions};
use tracepoint_reader::convert::{ConvertOptions, convert};

use tracepoint_query_tests::stores;
use tracepoint_query_tests::traces::{Field, Random, TraceSpec};

use crate::answers::{ask, missing};
use crate::seed;

async fn of_store(store: &Path) -> Engine {
    Engine::open(store, EngineOptions::default()).await.expect("a store")
}

async fn of_trace(trace: &Path, parallelism: usize) -> Engine {
    let mut options = EngineOptions::default();
    options.parallelism = parallelism;
    Engine::open_any(trace, options).await.expect("a trace")
}

/// The rows of an answer as sorted texts, and the notes about missing data.
async fn asked(engine: &Engine, sql: &str) -> (Vec<String>, Vec<String>) {
    let mut answer = engine.query(sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
    let mut rows: Vec<RecordBatch> = Vec::new();
    while let Some(batch) = answer.next().await.unwrap_or_else(|error| panic!("{sql}: {error}")) {
        rows.push(batch);
    }
    let mut lines: Vec<_> =
        pretty_format_batches(&rows).expect("a table").to_string().lines().map(str::to_owned).collect();
    lines.sort();
    (lines, engine.missing(&answer).await.expect("losses can be read").notes)
}

async fn assert_same(store: &Engine, trace: &Engine, sql: &str, place: &str) {
    let (expected, found) = (asked(store, sql).await, asked(trace, sql).await);
    assert_eq!(found.0, expected.0, "{place}: {sql}");
    assert_eq!(found.1, expected.1, "{place}: what is missing: {sql}");
}

/// Checks that the trace has all tables of the store with the same columns. The trace may have more tables, without rows.
async fn assert_same_tables(store: &Engine, trace: &Engine, place: &str) -> Vec<(String, Vec<String>)> {
    let expected = store.tables().await.expect("tables");
    let found: BTreeMap<_, _> =
        trace.tables().await.expect("tables").into_iter().map(|table| (table.name, table.columns)).collect();
    for table in &expected {
        assert_eq!(found.get(&table.name), Some(&table.columns), "{place}: {}", table.name);
    }
    for name in found.keys().filter(|name| !expected.iter().any(|table| table.name == **name)) {
        let (rows, _) = asked(trace, &format!("SELECT count(*) FROM \"{name}\" HAVING count(*) > 0")).await;
        assert!(rows.len() <= 4, "{place}: {name} is not in the store");
    }
    let columns = |schema: &tracepoint_query::arrow::datatypes::SchemaRef| {
        schema.fields().iter().map(|field| field.name().clone()).collect()
    };
    expected.iter().map(|table| (table.name.clone(), columns(&table.columns))).collect()
}

/// Queries that read a table in different ways.
fn queries(table: &str, columns: &[String], random: &mut Random) -> Vec<String> {
    let all = format!("SELECT * FROM \"{table}\"");
    let mut queries = vec![all.clone(), format!("SELECT count(*) FROM \"{table}\"")];
    let column = &columns[random.below(columns.len() as u64) as usize];
    queries.push(format!("SELECT \"{column}\" FROM \"{table}\""));
    queries.push(format!("SELECT count(\"{column}\") FROM \"{table}\" WHERE \"{column}\" IS NOT NULL"));
    if columns.iter().any(|column| column == "seq") {
        let from = 1_795_392_000_000_000_000 + random.below(3 * 86_400_000_000_000);
        let until = from + random.below(86_400_000_000_000);
        let ts = format!("ts >= to_timestamp_nanos({from}) AND ts < to_timestamp_nanos({until})");
        queries.push(format!("{all} WHERE {ts}"));
        queries.push(format!("SELECT stream, seq, lost_before FROM \"{table}\" WHERE {ts}"));
        queries.push(format!("{all} WHERE seq % 7 = {} AND tid > 1000", random.below(7)));
        queries.push(format!("SELECT stream, max(seq), sum(lost_before) FROM \"{table}\" GROUP BY stream"));
        queries.push(format!(
            "SELECT day, session, count(*) FROM \"{table}\" WHERE day > '2026-11-23' GROUP BY day, session"
        ));
        queries.push(format!("SELECT host, count(*) FROM \"{table}\" WHERE host = 'host-1' OR {ts} GROUP BY host"));
    }
    queries
}

async fn check(seed: u64) {
    let mut random = Random(seed);
    let place = tempfile::tempdir().expect("a directory");
    let (trace, store) = (place.path().join("traces"), place.path().join("store"));
    for number in 0..=random.below(2) {
        let mut made = TraceSpec::random(&mut random);
        (made.host, made.session) = (format!("host-{number}"), ["made", "made \u{e4}", ""][number as usize].to_owned());
        made.write(&trace.join(format!("{number}")), &mut random);
    }
    stores::store(&store, &trace, 1 + random.below(100) as usize);
    let parallelism = 1 + random.below(4) as usize;
    let (store, trace) = (of_store(&store).await, of_trace(&trace, parallelism).await);
    let name = format!("seed {seed}");
    for (table, columns) in assert_same_tables(&store, &trace, &name).await {
        for sql in queries(&table, &columns, &mut random) {
            assert_same(&store, &trace, &sql, &name).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn any_trace_has_the_rows_of_its_store() {
    let first = seed::seed();
    let count = std::env::var("TRACEPOINT_SCHEMAS").map_or(4, |count| count.parse().expect("a number"));
    for number in 0..count {
        check(first.wrapping_add(number)).await;
    }
}

/// A tree of recorded traces, one of them with losses, and of generated ones with two versions of an event.
fn tree(place: &Path) -> PathBuf {
    let tree = place.join("tree");
    stores::record(&tree.join("shop"), "shop", 16 << 20, 10_000);
    stores::record(&tree.join("lossy"), "lossy", 64 << 10, 20_000);
    for day in 0..3 {
        for (number, host) in ["web-1", "web 2"].into_iter().enumerate() {
            let fields = vec![stores::integer("sector"), stores::integer("bytes")];
            stores::made(&tree.join(format!("{day} {host}")), 2 * day + number as u64, host, day, fields);
        }
    }
    let fields = vec![stores::integer("sector"), ("disk".to_owned(), Field::Enum)];
    stores::made(&tree.join("other version"), 77, "web-1", 1, fields);
    tree
}

#[tokio::test(flavor = "multi_thread")]
async fn all_queries_of_the_book_answer_alike() {
    let place = tempfile::tempdir().expect("a directory");
    let (tree, store) = (tree(place.path()), place.path().join("store"));
    stores::store(&store, &tree, 5000);
    let (store, trace) = (of_store(&store).await, of_trace(&tree, 2).await);
    assert_same_tables(&store, &trace, "tree").await;
    for query in tracepoint_query_tests::queries("datafusion") {
        let (expected, found) = (ask(&store, &query.sql).await, ask(&trace, &query.sql).await);
        tracepoint_query_tests::assert_equal(&query, found.expect("an answer"), expected.expect("an answer"));
        assert_eq!(missing(&trace, &query.sql).await, missing(&store, &query.sql).await, "{}", query.name);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn dt_files_are_traces_as_well() {
    let place = tempfile::tempdir().expect("a directory");
    let (trace, file, store) = (place.path().join("trace"), place.path().join("trace.dt"), place.path().join("store"));
    stores::record(&trace, "shop", 16 << 20, 20_000);
    convert(&trace, &file, ConvertOptions::default(), |_| {}).expect("a dt file");
    stores::store(&store, &file, 5000);
    let (store, trace) = (of_store(&store).await, of_trace(&file, 3).await);
    for (table, _) in assert_same_tables(&store, &trace, "dt").await {
        assert_same(&store, &trace, &format!("SELECT * FROM \"{table}\""), "dt").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn damage_is_told_and_the_rest_is_read() {
    let place = tempfile::tempdir().expect("a directory");
    let trace = place.path().join("trace");
    stores::record(&trace, "shop", 1 << 20, 60_000);
    let count = async |sql: &str| asked(&of_trace(&trace, 2).await, sql).await;
    let (whole, notes) = count("SELECT count(*) FROM \"shop:answered\"").await;
    assert!(notes.iter().all(|note| !note.contains("damaged")), "{notes:?}");
    let stream = tracepoint_reader::stream_files(&trace).expect("streams").remove(0);
    let mut bytes = fs::read(&stream).expect("a file");
    // Damage a packet in the middle of the file.
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0xff;
    fs::write(&stream, &bytes).expect("a file");
    let store = place.path().join("store");
    stores::store(&store, &trace, 5000);
    let (of_store, of_trace) = (of_store(&store).await, of_trace(&trace, 2).await);
    for table in ["shop:answered", "shop:asked", "losses", "account", "events"] {
        assert_same(&of_store, &of_trace, &format!("SELECT * FROM \"{table}\""), "damage").await;
    }
    let answer = of_trace.query("SELECT count(*) FROM \"shop:answered\"").await.expect("a query");
    let missing = of_trace.missing(&answer).await.expect("losses can be read");
    assert_eq!(missing.damage, 1);
    assert!(missing.notes[0].contains("1 part of the traces is damaged"), "{missing:?}");
    let (rest, _) = count("SELECT count(*) FROM \"shop:answered\"").await;
    assert_ne!(rest, whole);
}

/// The plan with the metrics of a run.
async fn analyzed(engine: &Engine, sql: &str) -> String {
    let rows = ask(engine, &format!("EXPLAIN ANALYZE {sql}")).await.expect("a plan");
    rows.iter().flatten().filter_map(|value| value.as_str()).collect::<Vec<_>>().join("\n")
}

fn counted(plan: &str, metric: &str) -> u64 {
    let start = plan.find(&format!("{metric}=")).unwrap_or_else(|| panic!("no {metric}: {plan}"));
    let digits = plan[start + metric.len() + 1..].chars().take_while(char::is_ascii_digit).collect::<String>();
    digits.parse().unwrap_or_else(|_| panic!("{metric}: {plan}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn packets_of_other_times_and_streams_are_not_read() {
    let place = tempfile::tempdir().expect("a directory");
    let tree = place.path().join("tree");
    for day in 0..3 {
        stores::made(&tree.join(format!("{day}")), day, &format!("host-{day}"), day, vec![stores::integer("sector")]);
    }
    let trace = of_trace(&tree, 2).await;
    let read = async |condition: &str| {
        let plan = analyzed(&trace, &format!("SELECT sum(sector) FROM \"disk:read\" WHERE {condition}")).await;
        (counted(&plan, "packets_read"), counted(&plan, "packets_pruned"))
    };
    let all = read("sector >= 0").await.0;
    assert_eq!(all, 3 * 2 * 4, "each has two streams of four packets");
    for condition in ["day = '2026-11-24'", "host = 'host-1'", "ts >= '2026-11-24' AND ts < '2026-11-25'"] {
        assert_eq!(read(condition).await, (8, 16), "{condition}");
    }
    let (some, others) = read("ts < '2026-11-23 01:01:00Z'").await;
    assert!((2..8).contains(&some) && some + others == 24, "{some}, {others}");
    assert_eq!(read("stream = 'none'").await, (0, 24));
    let plan = analyzed(&trace, "SELECT sector FROM \"disk:read\" LIMIT 3").await;
    assert!(counted(&plan, "packets_read") <= 2, "a limit ends it: {plan}");
    let plan = analyzed(&trace, "SELECT count(*) FROM events WHERE event = 'disk:other'").await;
    assert!(!plan.contains("packets_read=8"), "{plan}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_is_made_again_from_its_description() {
    use futures::TryStreamExt;
    use tracepoint_query::datafusion::physical_plan::ExecutionPlan;
    use tracepoint_query::datafusion::prelude::SessionContext;
    use tracepoint_query::{ScanDescription, TraceExec};
    use tracepoint_tables::{Selection, TraceTables};

    let place = tempfile::tempdir().expect("a directory");
    let trace = place.path().join("trace");
    let events = stores::made(&trace, 5, "a", 0, vec![stores::integer("sector")]);
    let tables = TraceTables::open(&trace).expect("a trace");
    let (name, columns) = tables.events().next().expect("an event");
    let packets = tables.streams().iter().map(|stream| 0..stream.index.len()).enumerate().map(|run| vec![run]);
    let selection = Selection::Events(vec![name.to_owned()]);
    let description = tables.describe(selection, std::sync::Arc::clone(columns), packets.collect());
    let bytes = description.to_bytes().expect("bytes");
    let again = ScanDescription::from_bytes(&bytes).expect("a description");
    assert_eq!(again, description);
    let (plan, mut rows) = (TraceExec::new(again), 0);
    assert_eq!(plan.description(), &description);
    for partition in 0..description.partitions.len() {
        let stream = plan.execute(partition, SessionContext::new().task_ctx()).expect("a stream");
        let batches: Vec<_> = stream.try_collect().await.expect("rows");
        rows += batches.iter().map(RecordBatch::num_rows).sum::<usize>();
    }
    assert_eq!(rows as u64, events);
    assert!(ScanDescription::from_bytes(b"{}").is_err());
}
