//! The engine and `DuckDB` answer the same queries of the same store in the same way, those of `docs/query.md` among them.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use tracepoint_queries::{Rows, assert_equal, queries, stores};

use crate::answers::{ask, open};
use crate::skip::skip;

const PAGE: &str = include_str!("../../../../docs/query.md");

fn words(sql: &str) -> String {
    sql.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// What DuckDB answers; `None` if it is not installed and that is allowed.
fn duckdb(store: &Path, queries: &[String]) -> Option<Vec<Rows>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let packages = root.join("../../target/tools/duckdb");
    if !packages.join("duckdb").is_dir() {
        skip("DuckDB from PyPI is not installed", "Run scripts/setup.sh");
        return None;
    }
    let mut command = Command::new("python3");
    command.arg(root.join("tests/duckdb/answer.py")).arg(store).env("PYTHONPATH", packages);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("python3 runs");
    let input = serde_json::to_vec(queries).expect("JSON");
    child.stdin.take().expect("a pipe").write_all(&input).expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success(), "DuckDB cannot answer a query: see above");
    Some(serde_json::from_slice(&output.stdout).expect("JSON"))
}

#[tokio::test]
async fn both_engines_answer_alike() {
    let place = tempfile::tempdir().expect("a directory");
    let store = stores::shop(place.path());
    let queries = queries("datafusion");
    assert!(queries.len() >= 20, "{queries:?}");
    let of_duckdb: Vec<_> = tracepoint_queries::queries("duckdb").into_iter().map(|query| query.sql).collect();
    let Some(expected) = duckdb(&store, &of_duckdb) else { return };
    let engine = open(&store).await;
    for (query, expected) in queries.iter().zip(expected) {
        let answer = ask(&engine, &query.sql).await.unwrap_or_else(|error| panic!("{}: {error}", query.name));
        assert_equal(query, answer, expected);
    }
}

#[test]
fn the_recipes_of_the_book_are_among_them() {
    let known: Vec<_> = queries("datafusion").iter().map(|query| words(&query.sql)).collect();
    let recipes: Vec<_> = PAGE.split("```sql\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert!(recipes.len() >= 10);
    for recipe in recipes {
        assert!(known.contains(&words(recipe)), "add this to query/queries/: {recipe}");
    }
}
