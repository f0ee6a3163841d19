//! Engines that read a store without our code, `DuckDB` and Spark, each driven by a Python program.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use tracepoint_query_tests::{Rows, queries, stores};

use crate::skip::skip;

const PAGE: &str = include_str!("../../../../docs/engines.md");
const PARQUET: &str = include_str!("../../../../docs/parquet.md");

/// Limits the JIT to its first tier: programs that run for a short time gain nothing from more.
const JAVA: &str = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC";

/// The code blocks of a page that are in this language.
fn blocks<'a>(page: &'a str, language: &str) -> Vec<&'a str> {
    let begin = format!("```{language}\n");
    page.split(&begin).skip(1).filter_map(|rest| rest.split("```").next()).collect()
}

/// The directory of a `PyPI` package installed by `scripts/setup.sh`; `None` if it is missing and may be.
fn installed(tool: &str, package: &str) -> Option<PathBuf> {
    let packages = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tools").join(tool);
    if packages.join(package).is_dir() {
        return Some(packages);
    }
    skip(&format!("{package} from PyPI is not installed"), "Run scripts/setup.sh");
    None
}

/// DuckDB's answers to the queries.
pub(crate) fn duckdb(store: &Path) -> Option<Vec<Rows>> {
    let packages = installed("duckdb", "duckdb")?;
    Some(ask("duckdb", store, Command::new("python3").env("PYTHONPATH", packages)))
}

/// Spark's answers to the queries, computed by a master and two workers with their files in `place`.
pub(crate) fn spark(store: &Path, place: &Path) -> Option<Vec<Rows>> {
    let packages = installed("spark", "pyspark")?;
    if Command::new("java").arg("-version").output().is_err() {
        skip("Spark has no Java", "Run scripts/setup.sh");
        return None;
    }
    fs::write(place.join("traces.py"), blocks(PAGE, "python").concat()).expect("a file");
    let settings = [
        ("spark.driver.extraJavaOptions", JAVA),
        ("spark.executor.extraJavaOptions", JAVA),
        ("spark.sql.shuffle.partitions", "2"),
        ("spark.ui.enabled", "false"),
        ("spark.ui.showConsoleProgress", "false"),
        ("spark.log.level", "ERROR"),
    ];
    let settings = settings.map(|(name, value)| format!("--conf '{name}={value}'")).join(" ");
    let modules = std::env::join_paths([packages.as_path(), place]).expect("paths without colons");
    let mut command = Command::new("python3");
    command.current_dir(place).env("PYTHONPATH", modules).env("PYSPARK_SUBMIT_ARGS", settings + " pyspark-shell");
    command.env("SPARK_LOCAL_IP", "127.0.0.1").env("SPARK_WORKER_DIR", place).env("SPARK_LOCAL_DIRS", place);
    Some(ask("spark", store, command.env_remove("SPARK_HOME")))
}

/// Runs all queries, in an engine's dialect, with its program `answer.py`.
fn ask(engine: &str, store: &Path, command: &mut Command) -> Vec<Rows> {
    let queries: Vec<_> = queries(engine).into_iter().map(|query| query.sql).collect();
    let answers = run(command.arg(tests().join(engine).join("answer.py")).arg(store), &queries);
    serde_json::from_value(answers).expect("rows")
}

/// Passes JSON to a program, and returns its answer.
fn run(command: &mut Command, input: &[String]) -> Value {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("python3 runs");
    let input = serde_json::to_vec(input).expect("JSON");
    child.stdin.take().expect("a pipe").write_all(&input).expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{command:?} fails: see above");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn tests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests")
}

#[test]
fn duckdb_runs_the_recipes_of_the_book() {
    let Some(packages) = installed("duckdb", "duckdb") else { return };
    let place = tempfile::tempdir().expect("a directory");
    let store = stores::shop(place.path());
    let recipes = blocks(PAGE, "sql").into_iter().chain(blocks(PARQUET, "sql"));
    let recipes: Vec<_> = recipes.map(|sql| sql.replace("/srv/traces", store.to_str().expect("UTF-8"))).collect();
    let mut command = Command::new("python3");
    let rows = run(command.arg(tests().join("duckdb/recipes.py")).env("PYTHONPATH", packages), &recipes);
    let rows: Vec<Vec<u64>> = serde_json::from_value(rows).expect("numbers");
    let of_page: Vec<_> = rows[..blocks(PAGE, "sql").len()].concat();
    assert!(of_page.len() >= 3 && of_page.iter().all(|rows| *rows > 0), "{rows:?}");
}
