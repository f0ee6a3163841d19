//! A cluster gives the same answers and notes as the embedded engine to the queries of `query/tests/queries/`.

use tracepoint_query_tests::processes::{errors, rows};
use tracepoint_query_tests::{assert_equal, queries, stores};

use crate::{program, start};

/// Compares answers of two executors, for a store or for the traces in it.
fn two_executors_answer(of_traces: bool) {
    let place = tempfile::tempdir().expect("a directory");
    let traces = place.path().join("traces");
    std::fs::create_dir(&traces).expect("a directory");
    let mut store = stores::shop(&traces);
    if of_traces {
        std::fs::remove_dir_all(&store).expect("a store");
        store = traces;
    }
    let cluster = start(place.path(), 2, 2);
    let queries = queries("datafusion");
    assert!(queries.len() >= 20);
    let mut failed = Vec::new();
    for query in &queries {
        let embedded = program(&["--json", &query.sql]).arg(&store).output().expect("the program runs");
        let output = cluster.query(&query.sql, &store).output().expect("the program runs");
        if !output.status.success() {
            failed.push(format!("{}: {}", query.name, errors(&output)));
            continue;
        }
        assert_equal(query, rows(&output), rows(&embedded));
        assert_eq!(errors(&output), errors(&embedded), "{}: the same is told to be missing", query.name);
    }
    assert!(failed.is_empty(), "{failed:#?}");
    for executor in &cluster.executors {
        assert!(executor.results() > 0, "both executors have done a part of it");
    }
}

#[test]
fn two_executors_answer_like_the_embedded_engine() {
    two_executors_answer(false);
}

#[test]
fn two_executors_read_traces_like_the_embedded_engine() {
    two_executors_answer(true);
}

#[test]
fn what_is_lost_is_told_as_well() {
    let place = tempfile::tempdir().expect("a directory");
    let store = stores::shop(place.path());
    let cluster = start(place.path(), 1, 2);
    let output =
        cluster.query("SELECT count(*) AS n FROM \"shop:answered\"", &store).output().expect("the program runs");
    assert_eq!(rows(&output).len(), 1);
    assert!(errors(&output).contains("events were lost in the channels of \"shop:answered\""), "{}", errors(&output));
    // The client itself answers queries that read no table of the store.
    let output = cluster.query("SELECT 1 AS n", &store).output().expect("the program runs");
    assert_eq!(rows(&output), [[1]]);
}
