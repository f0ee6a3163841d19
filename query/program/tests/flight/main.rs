//! `tracectl query --serve`, tested with ADBC's driver of Arrow Flight SQL.

#[path = "../../../../tests/support/skip.rs"]
mod skip;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tracepoint_query_tests::processes::{self, Process};
use tracepoint_query_tests::{Rows, assert_equal, queries, stores};

use skip::skip;

const PAGE: &str = include_str!("../../../../docs/query.md");

/// Starts a server.
fn serve(store: &Path, arguments: &[&str]) -> Process {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tracectl-query"));
    Process::start(command.args(["--serve", "127.0.0.1:0"]).arg(store).args(arguments))
}

/// The directory of the client; `None` if it is missing and may be.
fn packages() -> Option<PathBuf> {
    let packages = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tools/adbc");
    if !packages.join("adbc_driver_flightsql").is_dir() {
        skip("ADBC's driver of Arrow Flight SQL from PyPI is not installed", "Run scripts/setup.sh");
        return None;
    }
    Some(packages)
}

/// Runs the client, and returns its findings.
fn client(server: &Process, arguments: &[&str], input: &Value) -> Option<Value> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/flight/client.py");
    let mut command = Command::new("python3");
    command.arg(script).arg(format!("grpc://{}", server.address)).args(arguments).env("PYTHONPATH", packages()?);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("python3 runs");
    serde_json::to_writer(child.stdin.take().expect("a pipe"), input).expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success(), "the client fails: see above");
    Some(serde_json::from_slice(&output.stdout).expect("JSON"))
}

#[test]
fn a_client_of_another_project_gets_the_same_answers() {
    let place = tempfile::tempdir().expect("a directory");
    let store = stores::shop(place.path());
    let server = serve(&store, &[]);
    let queries = queries("datafusion");
    let texts: Vec<_> = queries.iter().map(|query| query.sql.as_str()).collect();
    let Some(found) = client(&server, &["ask"], &json!(texts)) else { return };
    let answers = found["answers"].as_array().expect("answers");
    assert_eq!(found["prepared"], answers[0]["rows"]);
    for (query, answer) in queries.iter().zip(answers) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tracectl-query"));
        let embedded = command.args(["--json", &query.sql]).arg(&store).output().expect("the program runs");
        let rows: Rows = serde_json::from_value(answer["rows"].clone()).expect("rows");
        assert_equal(query, numbers(rows), numbers(processes::rows(&embedded)));
        let notes: Vec<_> = answer["missing"].as_array().expect("notes").iter().filter_map(Value::as_str).collect();
        let expected = processes::errors(&embedded);
        let expected: Vec<_> = expected.lines().filter_map(|line| line.strip_prefix("note: ")).collect();
        assert_eq!(notes, expected, "{}", query.name);
    }
}

#[test]
fn a_trace_is_served_as_its_store_is() {
    let place = tempfile::tempdir().expect("a directory");
    let (trace, store) = (place.path().join("trace"), place.path().join("store"));
    // Some answers do not fit into the ring, and are lost.
    stores::record(&trace, "shop", 64 << 10, 30_000);
    stores::store(&store, &trace, 1000);
    let texts = json!([
        "SELECT path, count(*) AS requests, sum(nanos) AS nanos FROM \"shop:answered\" GROUP BY path ORDER BY path",
        "SELECT event, count(*) AS n, sum(lost_before) AS lost FROM events GROUP BY event ORDER BY event",
    ]);
    let Some(of_store) = client(&serve(&store, &[]), &["ask"], &texts) else { return };
    let Some(of_trace) = client(&serve(&trace, &[]), &["ask"], &texts) else { return };
    assert_eq!(of_trace["answers"], of_store["answers"]);
    let answer = &of_trace["answers"][0];
    assert_eq!(answer["rows"].as_array().map(Vec::len), Some(3), "{answer}");
    assert_ne!(answer["missing"], json!([]), "losses are told: {answer}");
}

/// The values that both sides format alike, in any order of columns: numbers except times.
fn numbers(rows: Rows) -> Rows {
    let plain = |mut row: Vec<Value>| {
        row.retain(|value| value.is_number() && value.as_f64() < Some(1e15));
        row.sort_by(|a, b| a.as_f64().partial_cmp(&b.as_f64()).expect("numbers"));
        row
    };
    rows.into_iter().map(plain).collect()
}

#[test]
fn tables_are_listed_and_nothing_is_written() {
    let place = tempfile::tempdir().expect("a directory");
    let store = stores::shop(place.path());
    let server = serve(&store, &[]);
    let Some(found) = client(&server, &["look"], &Value::Null) else { return };
    assert_eq!(found["catalogs"], json!(["datafusion"]));
    assert_eq!(found["schemas"], json!(["public"]));
    assert_eq!(found["types"], json!(["TABLE"]));
    let tables = found["tables"].as_object().expect("tables");
    for table in ["shop:asked", "shop:answered", "disk:read", "disk:read#*", "events", "account", "losses"] {
        assert!(tables.contains_key(table), "{tables:?}");
    }
    assert!(tables["shop:answered"].as_array().expect("columns").contains(&json!("nanos")));
    assert_eq!(found["vendor"], "tracectl query");
    assert_eq!(found["qualified"], found["bare"]);
    let refused = found["refused"].as_array().expect("errors");
    assert!(
        refused.iter().all(|error| error.as_str().is_some_and(|error| error.contains("only queries are run"))),
        "{refused:?}"
    );
    assert!(found["unknown"].as_str().is_some_and(|error| error.contains("did you mean")), "{}", found["unknown"]);
}

#[test]
fn only_who_has_the_token_is_served() {
    let place = tempfile::tempdir().expect("a directory");
    let store = stores::shop(place.path());
    let server = serve(&store, &["--token", "secret"]);
    let Some(found) = client(&server, &["token", "secret"], &Value::Null) else { return };
    assert_eq!(found, json!({ "without": false, "wrong": false, "bearer": true, "password": true }));
    // An address that other hosts can reach needs a token.
    let mut command = Command::new(env!("CARGO_BIN_EXE_tracectl-query"));
    let output = command.args(["--serve", "0.0.0.0:0"]).arg(&store).output().expect("the program runs");
    assert_eq!(output.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&output.stderr).contains("give a token by `--token`"));
}

#[test]
fn the_program_of_the_page_works() {
    let place = tempfile::tempdir().expect("a directory");
    let (trace, store) = (place.path().join("trace"), place.path().join("store"));
    stores::record(&trace, "shop", 16 << 20, 300);
    stores::store(&store, &trace, 1000);
    let server = serve(&store, &[]);
    let Some(packages) = packages() else { return };
    let program = PAGE.split("```python\n").nth(1).and_then(|rest| rest.split("```").next()).expect("a program");
    let program = program.replace("127.0.0.1:50060", &server.address);
    let output = Command::new("python3").args(["-c", &program]).env("PYTHONPATH", packages).output();
    let output = output.expect("python3 runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let written = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(written, "{'path': ['/', '/cart', '/login'], 'requests': [98, 99, 99]}\n[]\n");
}

#[test]
fn an_interrupt_ends_the_server_while_rows_are_fetched() {
    let place = tempfile::tempdir().expect("a directory");
    let store = stores::shop(place.path());
    let mut server = serve(&store, &["--queries", "1"]);
    let Some(packages) = packages() else { return };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/flight/client.py");
    let mut command = Command::new("python3");
    command.arg(script).arg(format!("grpc://{}", server.address)).arg("endless").env("PYTHONPATH", packages);
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("python3 runs");
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    assert_eq!(lines.next().expect("a line").expect("text"), "rows come");
    kill_process(Pid::from_child(&server.child), Signal::INT).expect("it runs");
    assert_eq!(server.child.wait().expect("it ends").code(), Some(130));
    assert_eq!(lines.next().expect("a line").expect("text"), "the end is told as an error");
    assert!(child.wait().expect("it ends").success());
}
