//! Processes that die or are missing.

use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tracepoint_query_tests::processes::{Cluster, ended, errors, rows, wait};
use tracepoint_query_tests::stores;

use crate::{program, start};

/// Counts a very large number of pairs of requests. The query repartitions by the join key first, so executors read each other's results.
const LONG: &str = "SELECT count(*) AS n FROM \"shop:answered\" AS a JOIN \"shop:answered\" AS b ON a.path = b.path AND a.nanos < b.nanos";
/// The same count, computed from the ranks of requests.
const SAME: &str = "SELECT sum(below) AS n FROM (SELECT rank() OVER (PARTITION BY path ORDER BY nanos) - 1 AS below FROM \"shop:answered\")";
/// Counts pairs of pairs: runs for hours.
const ENDLESS: &str = "SELECT count(*) AS n FROM \"shop:answered\" AS a JOIN \"shop:answered\" AS b ON a.path = b.path AND a.nanos < b.nanos
    JOIN \"shop:answered\" AS c ON a.path = c.path AND b.nanos < c.nanos";

/// A store of a given number of requests.
fn store(place: &Path, requests: u64) -> PathBuf {
    let (trace, store) = (place.join("trace"), place.join("store"));
    stores::record(&trace, "shop", 16 << 20, requests);
    stores::store(&store, &trace, 1000);
    store
}

fn begin(cluster: &Cluster, sql: &str, store: &Path) -> Child {
    let mut command = cluster.query(sql, store);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program runs")
}

fn number(rows: &[Vec<Value>]) -> u64 {
    rows[0][0].as_u64().expect("a number")
}

#[test]
fn a_query_survives_the_death_of_an_executor() {
    let place = tempfile::tempdir().expect("a directory");
    let store = store(place.path(), 20_000);
    let mut cluster = start(place.path(), 2, 1);
    let expected = program(&["--json", SAME]).arg(&store).output().expect("the program runs");
    let mut query = begin(&cluster, LONG, &store);
    // It has results that others need, and the query is still running.
    wait("a part of the query", || cluster.executors[0].results() > 0);
    assert!(query.try_wait().expect("it runs").is_none(), "the query has ended already");
    cluster.executors[0].process.kill();
    let output = ended(query);
    if output.status.success() {
        assert_eq!(number(&rows(&output)), number(&rows(&expected)), "it is right");
    } else {
        assert_eq!(output.status.code(), Some(3));
        assert!(errors(&output).starts_with("error: the query failed on the cluster: "), "{}", errors(&output));
        assert_eq!(output.stdout, b"", "no number beside the error");
    }
    // The other executor keeps working.
    let output = ended(begin(&cluster, SAME, &store));
    assert_eq!(number(&rows(&output)), number(&rows(&expected)));
}

#[test]
fn a_query_fails_when_the_last_executor_or_the_scheduler_dies() {
    let place = tempfile::tempdir().expect("a directory");
    let store = store(place.path(), 20_000);
    let mut cluster = start(place.path(), 1, 1);
    let query = begin(&cluster, ENDLESS, &store);
    wait("a part of the query", || cluster.executors[0].results() > 0);
    cluster.executors[0].process.kill();
    let output = ended(query);
    assert_eq!(output.status.code(), Some(3));
    let address = cluster.scheduler.address.clone();
    let remedy = format!("start one on each machine: `tracectl query executor --scheduler {address}`");
    assert!(errors(&output).contains(&remedy), "{}", errors(&output));
    // Without an executor the query does not start.
    let output = ended(begin(&cluster, LONG, &store));
    assert!(errors(&output).contains(&remedy), "{}", errors(&output));
    cluster.scheduler.kill();
    let output = ended(begin(&cluster, LONG, &store));
    assert_eq!(output.status.code(), Some(3));
    let remedy = format!("`tracectl query scheduler --bind {address}`");
    assert!(errors(&output).contains(&remedy), "{}", errors(&output));
}

#[test]
fn an_interrupt_cancels_the_query_on_the_cluster() {
    let place = tempfile::tempdir().expect("a directory");
    let store = store(place.path(), 20_000);
    let cluster = start(place.path(), 1, 1);
    let query = begin(&cluster, ENDLESS, &store);
    wait("a part of the query", || cluster.executors[0].results() > 0);
    kill_process(Pid::from_child(&query), Signal::INT).expect("it runs");
    assert_eq!(ended(query).status.code(), Some(130));
    // The cancelled query has released the only slot.
    let output = ended(begin(&cluster, "SELECT count(*) AS n FROM \"shop:answered\" WHERE status = 500", &store));
    assert!(number(&rows(&output)) > 0);
}

#[test]
fn a_store_that_executors_do_not_have_is_told() {
    let place = tempfile::tempdir().expect("a directory");
    store(place.path(), 100);
    let cluster = start(place.path(), 1, 1);
    // On the executor this path resolves to another directory.
    let sql = "SELECT count(*) AS n FROM \"shop:answered\" WHERE status = 500";
    let mut command = cluster.query(sql, Path::new("/proc/self/cwd/store"));
    let output = command.current_dir(place.path()).output().expect("the program runs");
    assert_eq!(output.status.code(), Some(3));
    let told = errors(&output);
    assert!(
        told.contains("an executor cannot read a file of the store") && told.contains("at the same path"),
        "{told}"
    );
}

#[test]
fn a_trace_that_executors_do_not_have_is_told() {
    let place = tempfile::tempdir().expect("a directory");
    store(place.path(), 100);
    let cluster = start(place.path(), 1, 1);
    let error = |path: &str| {
        let mut command = cluster.query("SELECT count(*) AS n FROM \"shop:answered\"", Path::new(path));
        let output = command.current_dir(place.path()).output().expect("the program runs");
        assert_eq!(output.status.code(), Some(3));
        assert_eq!(output.stdout, b"", "no number beside the error");
        errors(&output)
    };
    let told = error("/proc/self/cwd/trace");
    assert!(told.contains("an executor cannot read a file of the store or the trace"), "{told}");
    assert!(error("none").contains("is neither a store nor a trace"));
}

#[test]
fn addresses_are_checked() {
    let place = tempfile::tempdir().expect("a directory");
    let store = store(place.path(), 10);
    let error = |arguments: &[&str]| {
        let output = program(arguments).arg(&store).output().expect("the program runs");
        assert_eq!(output.status.code(), Some(3), "{arguments:?}");
        errors(&output)
    };
    assert!(error(&["SELECT 1", "--cluster", "localhost"]).contains("write HOST:PORT"));
    let nobody = error(&["SELECT 1", "--cluster", "127.0.0.1:1"]);
    assert!(nobody.contains("start one: `tracectl query scheduler --bind 127.0.0.1:1`"), "{nobody}");
    let executor = program(&["executor", "--scheduler", "127.0.0.1:1"]).output().expect("the program runs");
    assert!(errors(&executor).contains("`tracectl query scheduler --bind 127.0.0.1:1`"), "{}", errors(&executor));
}
