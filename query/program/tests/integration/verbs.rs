//! The verbs: what they print, and their exit codes.

use std::fs;

use serde_json::Value;

use crate::recorded::record;
use crate::{run, text};

#[test]
fn a_store_is_written_compacted_and_cleared() {
    let place = tempfile::tempdir().expect("a directory");
    let (trace, second, store) = (place.path().join("trace"), place.path().join("second"), place.path().join("store"));
    record(&trace, 1 << 20, 1000);
    record(&second, 1 << 20, 1000);
    let told = |arguments: &[&str]| {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("UTF-8")
    };
    let line = told(&["export", text(&store), text(&trace)]);
    assert!(line.contains("1100 events in 2 files"), "{line}");
    told(&["export", text(&store), text(&second)]);
    let again = run(&["export", text(&store), text(&trace)]);
    let error = String::from_utf8_lossy(&again.stderr);
    assert_eq!(again.status.code(), Some(3));
    assert!(error.contains("already") && error.contains("name another store"), "{error}");
    let compacted: Value = serde_json::from_str(&told(&["compact", "--json", text(&store)])).expect("JSON");
    assert_eq!((&compacted["files_before"], &compacted["files_after"]), (&6.into(), &3.into()));
    let kept: Value = serde_json::from_str(&told(&["retain", "--days", "1", "--json", text(&store)])).expect("JSON");
    assert_eq!(kept["removed_files"], 0);
    let line = told(&["retain", "--size", "0", text(&store)]);
    assert!(line.contains("0 days removed"), "the newest day stays: {line}");
    assert_eq!(run(&["retain", text(&store)]).status.code(), Some(2), "what stays?");
    assert_eq!(run(&["compact", text(place.path())]).status.code(), Some(3), "no store");
}

#[cfg(not(feature = "cluster"))]
#[test]
fn a_program_without_the_feature_cluster_says_how_to_get_it() {
    let query = ["--cluster", "127.0.0.1:1", "SELECT 1", "/tmp"];
    for arguments in [&query[..], &["scheduler", "--bind", "127.0.0.1:0"], &["executor", "--scheduler", "127.0.0.1:1"]]
    {
        let output = run(arguments);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(3) && error.contains("--features cluster"), "{arguments:?}: {error}");
    }
}

#[test]
fn damage_is_incomplete() {
    let place = tempfile::tempdir().expect("a directory");
    let (trace, store) = (place.path().join("trace"), place.path().join("store"));
    record(&trace, 1 << 20, 1000);
    let stream = fs::read_dir(&trace).expect("a trace").filter_map(Result::ok).map(|entry| entry.path());
    let stream = stream.into_iter().find(|path| path.is_file() && !path.ends_with("metadata")).expect("a stream");
    let mut bytes = fs::read(&stream).expect("a file");
    bytes.truncate(bytes.len() / 2);
    fs::write(&stream, bytes).expect("a file");
    let output = run(&["export", "--json", text(&store), text(&trace)]);
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
    let summary: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(summary["damage"], 1);
    // Modified metadata is damage as well, in addition to the truncated packet.
    let (other, metadata) = (place.path().join("other"), trace.join("metadata"));
    let changed = fs::read_to_string(&metadata).expect("metadata").replacen("shop:tick", "shop:tack", 1);
    fs::write(&metadata, changed).expect("a file");
    let output = run(&["export", "--json", text(&other), text(&trace)]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("note: ") && errors.contains("/metadata: byte 0: the metadata is damaged"), "{errors}");
    assert_eq!(output.status.code(), Some(1), "{errors}");
    let summary: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(summary["damage"], 2);
    let output = run(&["SELECT count(*) FROM \"shop:answered\"", text(&trace)]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(1) && errors.contains("2 parts of the traces are damaged"), "{errors}");
}
