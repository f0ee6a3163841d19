//! `tracectl query 'SELECT …' STORE`: what it prints, its notes, and its exit codes.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::recorded::record;
use crate::{run, text};

/// A store of requests, recorded with a ring of `ring` bytes.
fn store(place: &Path, ring: usize, requests: u64) -> PathBuf {
    let (trace, store) = (place.join("trace"), place.join("store"));
    record(&trace, ring, requests);
    let output = run(&["export", text(&store), text(&trace)]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    store
}

fn told(output: &Output) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("UTF-8");
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn answers_are_tables_json_and_csv() {
    let place = tempfile::tempdir().expect("a directory");
    let store = store(place.path(), 16 << 20, 3000);
    let sql = "SELECT path, count(*) AS requests FROM \"shop:answered\" GROUP BY path ORDER BY path";
    let of = |arguments: &[&str]| {
        let (code, out, errors) = told(&run(&[arguments, &[text(&store)]].concat()));
        assert_eq!((code, &*errors), (Some(0), ""), "{arguments:?}");
        out
    };
    let table = of(&[sql]);
    assert_eq!(table.lines().nth(1), Some("| path   | requests |"), "{table}");
    assert_eq!(table.lines().nth(3), Some("| /      | 1000     |"), "{table}");
    assert_eq!(of(&["--csv", sql]), "path,requests\n/,1000\n/cart,1000\n/login,1000\n");
    let rows: Vec<Value> = of(&["--json", sql]).lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(rows[1], json!({ "path": "/cart", "requests": 1000 }));
    // CSV and tables without rows have a header; JSON has no objects.
    let none = "SELECT id, path FROM \"shop:answered\" WHERE id < 0";
    assert_eq!((of(&["--csv", none]), of(&["--json", none])), ("id,path\n".to_owned(), String::new()));
    assert!(of(&[none]).contains("| id | path |"));
    let nothing: Value = serde_json::from_str(&of(&["--json", "SELECT NULL AS n"])).expect("JSON");
    assert_eq!(nothing, json!({ "n": null }), "NULL is told");
    let tables = of(&["--tables"]);
    assert!(tables.contains("\"shop:answered\"\n    ts Timestamp(ns, \"UTC\")\n"), "{tables}");
    let tables: Vec<Value> =
        of(&["--json", "--tables"]).lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let names: Vec<_> = tables.iter().map(|table| table["table"].as_str().expect("a name")).collect();
    assert_eq!(names, ["shop:answered", "shop:tick", "events", "account", "losses"]);
}

#[test]
fn long_tables_are_cut_and_other_formats_are_not() {
    let place = tempfile::tempdir().expect("a directory");
    let store = store(place.path(), 16 << 20, 3000);
    let sql = "SELECT id FROM \"shop:answered\"";
    let (code, out, errors) = told(&run(&[sql, text(&store)]));
    assert_eq!((code, out.lines().count()), (Some(0), 1004));
    assert!(errors.contains("note: only the first 1000 rows are shown; --csv and --json write all"), "{errors}");
    let (_, out, errors) = told(&run(&["--csv", sql, text(&store)]));
    assert_eq!((out.lines().count(), &*errors), (3001, ""));
}

#[test]
fn lost_events_are_told_beside_the_answer() {
    let place = tempfile::tempdir().expect("a directory");
    let store = store(place.path(), 64 << 10, 300_000);
    let sql = "SELECT (SELECT sum(events) FROM losses) AS lost, count(*) AS stored FROM \"shop:tick\"";
    let (code, out, errors) = told(&run(&["--json", sql, text(&store)]));
    let answer: Value = serde_json::from_str(&out).expect("one object");
    let lost = answer["lost"].as_u64().expect("a number");
    assert!(lost > 0);
    assert_eq!(code, Some(0));
    assert_eq!(
        errors,
        format!("note: {lost} events were lost in the channels of \"shop:tick\", in this time: see the table losses\n")
    );
    let (_, _, errors) = told(&run(&["SELECT count(*) FROM \"shop:tick\" WHERE day < '2020-01-01'", text(&store)]));
    assert_eq!(errors, "");
}

#[test]
fn errors_are_told_by_exit_codes() {
    let place = tempfile::tempdir().expect("a directory");
    let store = store(place.path(), 1 << 20, 10);
    let (code, _, errors) = told(&run(&["SELECT * FROM \"shop:answred\"", text(&store)]));
    assert_eq!(code, Some(3));
    assert!(errors.contains("did you mean \"shop:answered\""), "{errors}");
    let other = tempfile::tempdir().expect("a directory");
    let (code, _, errors) = told(&run(&["SELECT 1", text(other.path())]));
    assert_eq!(code, Some(3));
    assert!(errors.contains("is neither a store nor a trace"), "{errors}");
    for arguments in [&["SELECT 1"][..], &[], &["--tables"], &["--csv", "--json", "SELECT 1", text(&store)]] {
        assert_eq!(run(arguments).status.code(), Some(2), "{arguments:?}");
    }
}

#[test]
fn an_interrupt_ends_a_query_and_removes_its_files() {
    let place = tempfile::tempdir().expect("a directory");
    let store = store(place.path(), 1 << 20, 10);
    let temporary = place.path().join("temporary");
    std::fs::create_dir(&temporary).expect("a directory");
    let files = || {
        let directories = std::fs::read_dir(&temporary).expect("a directory").filter_map(Result::ok);
        directories.flat_map(|directory| std::fs::read_dir(directory.path()).into_iter().flatten()).count()
    };
    // This sorts for hours, in files.
    let sql = "SELECT value FROM generate_series(1, 1000000000000) ORDER BY value % 1000";
    let mut command = Command::new(env!("CARGO_BIN_EXE_tracectl-query"));
    command.args(["--memory", "16MiB", sql, text(&store)]).env("TMPDIR", &temporary);
    let mut child = command.spawn().expect("the program runs");
    while files() == 0 {
        assert_eq!(child.try_wait().expect("it runs"), None);
        thread::sleep(Duration::from_millis(10));
    }
    kill_process(Pid::from_child(&child), Signal::INT).expect("it runs");
    assert_eq!(child.wait().expect("it ends").code(), Some(130));
    assert_eq!(files(), 0);
}

#[test]
fn a_reader_that_has_enough_is_no_error() {
    let place = tempfile::tempdir().expect("a directory");
    let store = store(place.path(), 1 << 20, 10);
    let sql = "SELECT value FROM generate_series(1, 1000000000000)";
    let mut command = Command::new(env!("CARGO_BIN_EXE_tracectl-query"));
    command.args(["--csv", sql, text(&store)]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program runs");
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    assert_eq!(lines.next().expect("a header").expect("text"), "value");
    drop(lines);
    let (code, _, errors) = told(&child.wait_with_output().expect("it ends"));
    assert_eq!((code, &*errors), (Some(0), ""));
}
