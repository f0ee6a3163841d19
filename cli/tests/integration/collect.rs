//! `tracectl collect`: its addresses, its metrics, its end, and failures. What it receives is tested in `collector/tests`.

use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};

fn collect(output: &Path, options: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tracectl"));
    command.args(["collect", "-o"]).arg(output).args(options).env("NO_COLOR", "1");
    command
}

const FREE: [&str; 8] =
    ["--control", "127.0.0.1:0", "--data", "127.0.0.1:0", "--live", "127.0.0.1:0", "--metrics", "127.0.0.1:0"];

#[test]
fn addresses_come_first_and_counts_last() {
    let place = tempfile::tempdir().unwrap();
    let mut command = collect(&place.path().join("out"), &FREE);
    let mut child = command.arg("--json").stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let first: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
    assert_eq!(first["type"], "listening");
    for name in ["control", "data", "live"] {
        TcpStream::connect(first[name].as_str().unwrap()).unwrap();
    }
    let mut metrics = TcpStream::connect(first["metrics"].as_str().unwrap()).unwrap();
    metrics.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let mut text = String::new();
    metrics.read_to_string(&mut text).unwrap();
    assert!(text.starts_with("HTTP/1.1 200 OK\r\n") && text.contains("\ntracepoint_collector_sessions 0\n"), "{text}");
    assert!(text.contains("\ntracepoint_collector_packets_not_stored_total{reason=\"late\"} 0\n"), "{text}");
    // A parser of OpenMetrics takes the name of a counter without `_total` for that of its family.
    let types = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '));
    let mut families: Vec<_> = types.map(|(name, _)| name.strip_suffix("_total").unwrap_or(name)).collect();
    families.sort_unstable();
    let twice: Vec<_> = families.windows(2).filter(|pair| pair[0] == pair[1]).collect();
    assert!(families.len() > 10 && twice.is_empty(), "{twice:?}");
    Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    let last: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
    assert_eq!((last["type"].as_str(), last["counts"]["connections"].as_u64()), (Some("collected"), Some(4)));
    assert!(child.wait().unwrap().success());
}

#[test]
fn failures_name_the_address_and_the_mend() {
    let place = tempfile::tempdir().unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let output = collect(place.path(), &["--control", &address]).output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(3));
    assert!(message.contains(&format!("cannot listen on {address} for control connections: ")), "{message}");
    assert!(message.contains("; end the other program (perhaps lttng-relayd), or choose other ports"), "{message}");
    let file = place.path().join("file");
    std::fs::write(&file, "x").unwrap();
    let output = collect(&file, &FREE).output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&output.stderr).contains("cannot create "));
}
