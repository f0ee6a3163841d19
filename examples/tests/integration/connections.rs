//! A recording that begins after the clients connected contains their names.

use std::process::Command;

#[test]
fn a_late_trace_has_the_state_dump() {
    let place = tempfile::tempdir().unwrap();
    let trace = place.path().join("trace");
    let output = Command::new(crate::common::program::built("connections")).arg(&trace).output().unwrap();
    let out = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(out.starts_with("state dump connections: ran 1\n"), "{out}");

    let viewed = Command::new("babeltrace2").arg(&trace).env("LC_ALL", "C").output();
    let viewed = viewed.expect("babeltrace2 cannot be run: scripts/setup.sh installs it");
    assert!(viewed.status.success() && viewed.stderr.is_empty(), "{}", String::from_utf8_lossy(&viewed.stderr));
    let viewed = String::from_utf8(viewed.stdout).unwrap();
    let fields = |line: &str| {
        let (before, fields) = line.rsplit_once("{ ").unwrap();
        let name =
            before.split_whitespace().find(|word| word.starts_with("server:") || word.starts_with("tracepoint:"));
        format!("{} {}", name.unwrap(), fields.trim_end_matches(" }"))
    };
    let events: Vec<_> = viewed.lines().map(fields).collect();
    assert_eq!(
        events,
        [
            r#"tracepoint:state_begin: dump = "connections""#,
            r#"server:connection: id = 1, peer = "anna", requests = 0"#,
            r#"server:connection: id = 2, peer = "bert", requests = 0"#,
            r#"server:connection: id = 3, peer = "cleo", requests = 0"#,
            r#"tracepoint:state_end: dump = "connections", panicked = 0"#,
            "server:request: id = 2, n = 1",
            r#"server:connected: id = 4, peer = "dora""#,
        ]
    );
}
