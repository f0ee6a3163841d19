//! The latencies printed by the server match the recorded requests, and `tracectl hist` shows them while the server runs.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use tracepoint_reader::{Item, Trace, Value};

#[test]
fn every_request_is_measured() {
    let place = tempfile::tempdir_in("/dev/shm").unwrap();
    let trace = place.path().join("trace");
    let output = Command::new(crate::common::program::built("http"))
        .args(["--seconds", "1", "--connections", "3"])
        .env("TRACEPOINT", format!("http:req_end={}", trace.display()))
        .env("TRACEPOINT_RUN_DIR", place.path().join("run"))
        .output()
        .unwrap();
    let (out, err) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert!(output.status.success(), "{out}{err}");

    let mut recorded: BTreeMap<String, u64> = BTreeMap::new();
    let traces: Vec<_> = std::fs::read_dir(&trace).unwrap().map(|entry| entry.unwrap().path()).collect();
    let [trace] = &traces[..] else { panic!("{traces:?}") };
    for item in Trace::open(trace).unwrap().items() {
        let Item::Event(event) = item else { panic!("{item:?}") };
        let fields = event.fields.as_ref().unwrap();
        assert_eq!(fields.get("status").and_then(Value::as_u64), Some(200));
        let route = fields.get("route").and_then(Value::as_bytes).unwrap();
        *recorded.entry(String::from_utf8(route.to_vec()).unwrap()).or_default() += 1;
    }
    let measured = out.lines().filter_map(|line| {
        let words: Vec<_> = line.split_whitespace().collect();
        let [route, requests, ..] = words[..] else { return None };
        Some((route.to_owned(), requests.parse().ok()?))
    });
    let measured: BTreeMap<String, u64> = measured.filter(|(route, _)| route.starts_with('/')).collect();
    assert_eq!(measured, recorded, "{out}");
    assert_eq!(measured.keys().collect::<Vec<_>>(), ["/", "/documents", "/items/{number}"]);
}

#[test]
fn latencies_by_route_are_shown_while_it_runs() {
    let place = tempfile::tempdir_in("/dev/shm").unwrap();
    let run_dir = place.path().join("run");
    let mut server = Command::new(crate::common::program::built("http"))
        .args(["--seconds", "600", "--connections", "2"])
        .env("TRACEPOINT_RUN_DIR", &run_dir)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // Its output names the command that shows them.
    let lines = BufReader::new(server.stdout.take().unwrap()).lines().map(Result::unwrap);
    let command = lines.map(|line| line.trim().to_owned()).find(|line| line.starts_with("tracectl hist ")).unwrap();
    let command = format!("{command} --once --interval 500ms --json").replacen("tracectl", "\"$0\"", 1);
    let output = Command::new("sh")
        .args(["-c", &command])
        .arg(crate::common::program::tracectl())
        .env("TRACEPOINT_RUN_DIR", &run_dir)
        .output()
        .unwrap();
    server.kill().unwrap();
    server.wait().unwrap();
    let (out, err) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert!(output.status.success() && err.is_empty(), "{out}{err}");
    let shown: serde_json::Value = serde_json::from_str(&out).unwrap();
    let mut routes: Vec<_> =
        shown["groups"].as_array().unwrap().iter().map(|group| group["keys"][0].to_string()).collect();
    routes.sort();
    assert_eq!(routes, ["\"/\"", "\"/documents\"", "\"/items/{number}\""], "{out}");
    for group in shown["groups"].as_array().unwrap() {
        assert!(group["value"]["count"].as_u64() > Some(0) && group["value"]["p50"].as_f64() > Some(1000.0), "{group}");
    }
}
