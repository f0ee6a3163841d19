//! `tracectl query 'SELECT …' TRACE`: the same answers as from its store, `DuckDB` and babeltrace2; damage, and its exit code.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::recorded::record;
use crate::skip::skip;
use crate::{duckdb, run, text};

fn rows(path: &Path, sql: &str) -> (Option<i32>, Vec<Value>, String) {
    let output = run(&["--json", sql, text(path)]);
    let rows = String::from_utf8(output.stdout).expect("UTF-8");
    let rows = rows.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    (output.status.code(), rows, String::from_utf8(output.stderr).expect("UTF-8"))
}

#[test]
fn a_trace_answers_as_its_store_does() {
    let place = tempfile::tempdir().expect("a directory");
    let (trace, store) = (place.path().join("trace"), place.path().join("store"));
    record(&trace, 64 << 10, 30_000);
    assert!(run(&["export", text(&store), text(&trace)]).status.success());
    for sql in [
        "SELECT * FROM \"shop:answered\" ORDER BY stream, seq",
        "SELECT event, count(*), sum(lost_before) FROM events GROUP BY event ORDER BY event",
        "SELECT * FROM losses ORDER BY from_ts, what",
        "SELECT * FROM account ORDER BY scope, name, stream, what, reason",
        "SELECT * FROM lost('shop:tick')",
    ] {
        assert_eq!(rows(&trace, sql), rows(&store, sql), "{sql}");
    }
    let tables = |path: &Path| String::from_utf8(run(&["--tables", text(path)]).stdout).expect("UTF-8");
    assert_eq!(tables(&trace), tables(&store));
}

#[test]
fn counts_are_those_of_duckdb_and_babeltrace2() {
    let place = tempfile::tempdir().expect("a directory");
    let (trace, store) = (place.path().join("trace"), place.path().join("store"));
    record(&trace, 16 << 20, 20_000);
    let count = |event: &str| rows(&trace, &format!("SELECT count(*) AS n FROM \"{event}\"")).1[0]["n"].clone();
    let counts = json!({ "shop:answered": count("shop:answered"), "shop:tick": count("shop:tick") });
    assert_eq!(counts, json!({ "shop:answered": 20_000, "shop:tick": 2_000 }));
    assert!(run(&["export", text(&store), text(&trace)]).status.success());
    if let Some(found) = duckdb::read(&store, &["77"]) {
        assert_eq!(found["rows"], counts);
        let one = rows(&trace, "SELECT id, path FROM \"shop:answered\" WHERE id = 77").1;
        assert_eq!(one, [json!({ "id": found["one"][0][0], "path": found["one"][0][1] })]);
    }
    let Ok(output) = Command::new("babeltrace2").arg(&trace).output() else {
        skip("babeltrace2 is not installed", "Run scripts/setup.sh");
        return;
    };
    let lines = String::from_utf8(output.stdout).expect("UTF-8");
    let lines = |event: &str| lines.lines().filter(|line| line.contains(&format!(" {event}: "))).count();
    assert_eq!(counts, json!({ "shop:answered": lines("shop:answered"), "shop:tick": lines("shop:tick") }));
}

#[test]
fn a_damaged_trace_ends_with_1_and_no_trace_with_3() {
    let place = tempfile::tempdir().expect("a directory");
    let trace = place.path().join("trace");
    record(&trace, 1 << 20, 30_000);
    let sql = "SELECT count(*) AS n FROM \"shop:answered\"";
    assert_eq!(rows(&trace, sql).0, Some(0));
    let files = fs::read_dir(&trace).expect("a trace").filter_map(Result::ok).map(|entry| entry.path());
    let stream = files.into_iter().find(|path| path.is_file() && !path.ends_with("metadata")).expect("a stream");
    let mut bytes = fs::read(&stream).expect("a file");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0xff;
    fs::write(&stream, bytes).expect("a file");
    let (code, found, errors) = rows(&trace, sql);
    assert_eq!(code, Some(1), "{errors}");
    assert!(found[0]["n"].as_u64() < Some(30_000));
    assert!(errors.contains("1 part of the traces is damaged"), "{errors}");
    fs::write(trace.join("metadata"), "nonsense").expect("a file");
    let (code, _, errors) = rows(&trace, sql);
    assert_eq!(code, Some(3));
    assert!(errors.contains("metadata"), "{errors}");
    let (code, _, errors) = rows(&place.path().join("none"), sql);
    assert_eq!(code, Some(3));
    assert!(errors.contains("is neither a store nor a trace"), "{errors}");
}
