//! DuckDB reads a store: counts equal the account, losses included.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::recorded::record;
use crate::{run, skip::skip, text};

/// DuckDB's findings in a store; `None` if DuckDB is missing and may be.
pub(crate) fn read(store: &Path, arguments: &[&str]) -> Option<Value> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let packages = root.join("../../target/tools/duckdb");
    if !packages.join("duckdb").is_dir() {
        skip("DuckDB from PyPI is not installed", "Run scripts/setup.sh");
        return None;
    }
    let script = root.join("tests/duckdb/read_store.py");
    let mut command = Command::new("python3");
    let output = command.arg(script).arg(store).args(arguments).env("PYTHONPATH", packages).output();
    let output = output.expect("python3 runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(serde_json::from_slice(&output.stdout).expect("JSON"))
}

fn export(store: &Path, trace: &Path) -> Value {
    let output = run(&["export", "--json", text(store), text(trace)]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// Exports a trace of `requests` requests, and compares DuckDB's counts with the account. Returns the findings, and the number of missing events.
fn balanced(place: &Path, ring: usize, requests: u64) -> Option<(Value, i64)> {
    let (trace, store) = (place.join("trace"), place.join("store"));
    record(&trace, ring, requests);
    let summary = export(&store, &trace);
    let found = read(&store, &["77"])?;
    assert_eq!(found["rows"], found["stored"]);
    assert_eq!(found["rows"], found["recorded"], "nothing was lost behind the rings");
    assert_eq!(found["fired"], json!({ "shop:answered": requests, "shop:tick": requests / 10 }));
    let sum = |what: &str| found[what].as_object().expect("counts").values().filter_map(Value::as_i64).sum::<i64>();
    assert_eq!(sum("fired"), sum("rows") + sum("lost"));
    assert_eq!(found["missing"], summary["lost_events"]);
    assert!(found["lost_before"].as_i64() <= found["missing"].as_i64());
    assert_eq!((&found["duplicates"], &found["days"]), (&json!(0), &json!(0)));
    assert_eq!(found["sessions"], json!([["shop", true]]));
    let lost = sum("lost");
    Some((found, lost))
}

#[test]
fn counts_and_sums_are_those_of_the_account() {
    let place = tempfile::tempdir().expect("a directory");
    let requests = 200_000;
    let Some((found, lost)) = balanced(place.path(), 16 << 20, requests) else { return };
    assert_eq!(lost, 0);
    let nanos: u64 = (0..requests).map(|id| id * 7919 % 10_000).sum();
    assert_eq!(found["nanos"], nanos);
    assert_eq!(found["by_path"], json!({ "/": 66_667, "/cart": 66_667, "/login": 66_666 }));
    assert_eq!(found["one"], json!([[77, "/login"]]));
    assert_eq!((&found["row_groups"], &found["row_groups_with_id"]), (&json!(2), &json!(1)), "statistics prune");
    for (column, ty) in [("ts", "TIMESTAMPTZ_NS"), ("id", "UBIGINT"), ("status", "USMALLINT"), ("pid", "UINTEGER")] {
        let found = found["types"][column].as_str().expect("a column");
        assert!(found == ty, "{column} is {found}");
    }
}

#[test]
fn losses_are_counted_as_well() {
    let place = tempfile::tempdir().expect("a directory");
    let Some((_, lost)) = balanced(place.path(), 64 << 10, 300_000) else { return };
    assert!(lost >= 300, "some are larger than the ring");
}
