//! A query with too little memory spills to files, and its answer stays the same.

use tracepoint_query::{Engine, EngineOptions};

use crate::answers::ask;
use tracepoint_query_tests::stores;

#[tokio::test]
async fn a_sort_that_is_larger_than_its_memory_is_spilled() {
    let place = tempfile::tempdir().expect("a directory");
    let (trace, store) = (place.path().join("trace"), place.path().join("store"));
    stores::record(&trace, "shop", 16 << 20, 300_000);
    stores::store(&store, &trace, 50_000);
    // Each row repeats the texts of its stream and path, so the rows together exceed the memory.
    let sorted = "SELECT *, row_number() OVER (ORDER BY nanos, seq) AS number FROM \"shop:answered\"";
    let sql = format!("SELECT number, id, path FROM ({sorted}) WHERE number % 20000 = 0 ORDER BY number");
    let mut answers = Vec::new();
    for memory in [1 << 30, 12 << 20] {
        let mut options = EngineOptions::default();
        (options.memory, options.parallelism) = (memory, 2);
        let engine = Engine::open(&store, options).await.expect("a store");
        answers.push(ask(&engine, &sql).await.expect("an answer"));
        let plan = ask(&engine, &format!("EXPLAIN ANALYZE {sql}")).await.expect("a plan");
        let plan: String = plan.iter().flatten().filter_map(|value| value.as_str()).collect();
        let spills: Vec<_> =
            plan.match_indices("spill_count=").map(|(at, name)| &plan[at + name.len()..][..1]).collect();
        assert_eq!(spills.iter().any(|count| *count != "0"), memory < 1 << 30, "{plan}");
    }
    assert!(!answers[0].is_empty());
    assert_eq!(answers[0], answers[1]);
}

#[tokio::test]
async fn what_cannot_be_spilled_says_so() {
    let place = tempfile::tempdir().expect("a directory");
    let (trace, store) = (place.path().join("trace"), place.path().join("store"));
    stores::record(&trace, "shop", 16 << 20, 100_000);
    stores::store(&store, &trace, 50_000);
    let mut options = EngineOptions::default();
    options.memory = 64 << 10;
    let engine = Engine::open(&store, options).await.expect("a store");
    let error =
        ask(&engine, "SELECT array_agg(path ORDER BY nanos) FROM \"shop:answered\"").await.expect_err("too large");
    assert!(error.to_string().contains("--memory"), "{error}");
}
