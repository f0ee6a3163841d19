//! The engine and `DuckDB` answer the same queries of the same store in the same way, those of `docs/query.md` among them.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::answers::{Rows, ask, open};
use crate::skip::skip;
use crate::stores;

/// The queries: below a line `-- NAME` that of the engine, and below `-- NAME: duckdb` that of DuckDB, where it is another one. Names that
/// begin with `about` have answers that are estimated.
const QUERIES: &str = include_str!("../queries.sql");
const PAGE: &str = include_str!("../../../../docs/query.md");

/// How far an estimate may be from the exact value, as a share of it.
const ESTIMATE: f64 = 0.03;

fn queries() -> BTreeMap<String, String> {
    let mut queries = BTreeMap::<String, String>::new();
    let mut name = "";
    for line in QUERIES.lines() {
        match line.strip_prefix("-- ") {
            Some(next) => name = next,
            None => queries.entry(name.to_owned()).or_default().extend([line, " "]),
        }
    }
    queries
}

fn words(sql: &str) -> String {
    sql.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// What DuckDB answers; `None` if it is not installed and that is allowed.
fn duckdb(store: &Path, queries: &[&str]) -> Option<Vec<Rows>> {
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

fn is_equal(a: &Value, b: &Value, tolerance: f64) -> bool {
    // DuckDB has sums of 128 bits, which come as texts.
    let number = |value: &Value| value.as_f64().or_else(|| value.as_str()?.parse().ok());
    match (number(a), number(b)) {
        (Some(left), Some(right)) => (left - right).abs() <= tolerance * left.abs().max(right.abs()),
        _ => a == b,
    }
}

fn sorted(mut rows: Rows) -> Rows {
    rows.sort_by_key(|row| row.iter().map(|value| value.to_string().replace('"', "")).collect::<Vec<_>>());
    rows
}

#[tokio::test]
async fn both_engines_answer_alike() {
    let place = tempfile::tempdir().expect("a directory");
    let store = stores::shop(place.path());
    let all = queries();
    let names: Vec<_> = all.keys().filter(|name| !name.ends_with(": duckdb")).collect();
    assert!(names.len() >= 20, "{names:?}");
    let of_duckdb: Vec<_> =
        names.iter().map(|name| all.get(&format!("{name}: duckdb")).unwrap_or(&all[*name])).collect();
    let Some(expected) = duckdb(&store, &of_duckdb.into_iter().map(String::as_str).collect::<Vec<_>>()) else { return };
    let engine = open(&store).await;
    for (name, expected) in names.into_iter().zip(expected) {
        let answer = ask(&engine, &all[name]).await.unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(!answer.is_empty(), "{name} has no rows");
        let (answer, expected) = (sorted(answer), sorted(expected));
        assert_eq!(answer.len(), expected.len(), "{name}");
        let tolerance = if name.starts_with("about") { ESTIMATE } else { 1e-9 };
        for (row, expected) in answer.iter().zip(&expected) {
            assert_eq!(row.len(), expected.len(), "{name}");
            let is_equal = row.iter().zip(expected).all(|(a, b)| is_equal(a, b, tolerance));
            assert!(is_equal, "{name}: {row:?}, and by DuckDB {expected:?}");
        }
    }
}

#[test]
fn the_recipes_of_the_book_are_among_them() {
    let known: Vec<_> = queries().values().map(|sql| words(sql)).collect();
    let recipes: Vec<_> = PAGE.split("```sql\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert!(recipes.len() >= 10);
    for recipe in recipes {
        assert!(known.contains(&words(recipe)), "add this to tests/queries.sql: {recipe}");
    }
}
