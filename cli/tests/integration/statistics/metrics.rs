//! The metrics of `tracectl stat` and `hist`, read by a parser of Prometheus.

use super::{answered, requests, run, trace};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};

/// Reads metrics with Prometheus's own parser, which demands more in the newer format. Writes name, labels and value of each sample.
const PARSE: &str = "import json, sys
from prometheus_client.parser import text_string_to_metric_families
families = list(text_string_to_metric_families(sys.stdin.read()))
names = [family.name for family in families]
assert len(names) == len(set(names)), names
assert all(family.type in ('counter', 'gauge', 'histogram') and family.documentation for family in families), families
print(json.dumps([[s.name, dict(sorted(s.labels.items())), s.value] for family in families for s in family.samples]))";

/// The samples by name and labels.
fn parsed(metrics: &str) -> Vec<(String, Value, Value)> {
    let mut parser = Command::new("/usr/bin/python3");
    let parser = parser.args(["-c", PARSE]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut parser = parser.spawn().expect("python3, and python3-prometheus-client: scripts/setup.sh installs it");
    parser.stdin.take().unwrap().write_all(metrics.as_bytes()).unwrap();
    let output = parser.wait_with_output().unwrap();
    assert!(output.status.success(), "{metrics}\n{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn value(samples: &[(String, Value, Value)], name: &str, labels: &Value) -> Value {
    let mut found = samples.iter().filter(|(other, others, _)| other == name && others == labels);
    let (Some((_, _, value)), None) = (found.next(), found.next()) else { panic!("{name} {labels} in {samples:?}") };
    value.clone()
}

#[test]
fn statistics_are_metrics_that_prometheus_parses() {
    let (_place, directory) = trace(|| {
        requests();
        tracepoint::trace!(answered(5000, "a\"b\\c\nd", 7, 0.0));
    });
    let metrics = |arguments: &[&str]| {
        let (code, out, err) = run(arguments, &directory);
        assert_eq!((code, err.as_str()), (Some(0), ""));
        parsed(&out)
    };
    let counts = metrics(&["stat", "--prometheus"]);
    let total = "tracepoint_events_total";
    assert_eq!(value(&counts, total, &json!({ "event": "web:answered" })), 1001.0);
    assert_eq!(value(&counts, "tracepoint_events_lost_total", &json!({})), 0.0);
    let routes = metrics(&["stat", "--prometheus", "--by", "route", "-e", "web:answered"]);
    assert_eq!(value(&routes, total, &json!({ "route": "/é" })), 250.0);
    assert_eq!(value(&routes, total, &json!({ "route": "a\"b\\c\nd" })), 1.0);

    let sizes = metrics(&["hist", "size", "--prometheus"]);
    let bucket = |le: &str| value(&sizes, "tracepoint_values_bucket", &json!({ "le": le, "statistic": "hist(size)" }));
    // 0 to 999, and a 7: a bucket includes its bound.
    assert_eq!(
        [bucket("0"), bucket("7"), bucket("511"), bucket("1023"), bucket("+Inf")],
        [1.0, 9.0, 513.0, 1001.0, 1001.0]
    );
    let all = json!({ "statistic": "hist(size)" });
    assert_eq!(value(&sizes, "tracepoint_values_count", &all), 1001.0);
    let sum = value(&sizes, "tracepoint_values_sum", &all).as_f64().unwrap();
    assert!((sum - 499_507.0).abs() < 499_507.0 / 64.0, "{sum}");
    metrics(&["hist", "ratio", "--prometheus", "--by", "route,size", "--groups", "5"]);

    let latency = "latency(web:asked, web:answered by id)";
    let durations = metrics(&["hist", latency, "--prometheus", "--by", "route"]);
    let of_route = json!({ "statistic": format!("{latency} by route"), "route": "/" });
    assert_eq!(value(&durations, "tracepoint_latency_seconds_count", &of_route), 750.0);
    let sum = value(&durations, "tracepoint_latency_seconds_sum", &of_route).as_f64().unwrap();
    assert!(sum > 0.0 && sum < 100.0, "{sum}");
    let buckets = durations.iter().filter(|(name, labels, _)| name.ends_with("_bucket") && labels["route"] == "/");
    let buckets: Vec<f64> = buckets.map(|(_, _, value)| value.as_f64().unwrap()).collect();
    assert!(buckets.len() > 2 && buckets.is_sorted() && buckets.last() == Some(&750.0), "{buckets:?}");
    let in_flight = json!({ "statistic": format!("{latency} by route") });
    assert_eq!(value(&durations, "tracepoint_operations_in_flight", &in_flight), 9.0);
}

#[test]
fn metrics_are_served_until_it_is_interrupted() {
    let (_place, directory) = trace(requests);
    let mut server = Command::new(env!("CARGO_BIN_EXE_tracectl"));
    server.args(["stat", "--listen", "0"]).arg(&directory).stderr(Stdio::piped());
    let mut server = server.spawn().unwrap();
    let mut messages = BufReader::new(server.stderr.take().unwrap());
    let mut line = String::new();
    messages.read_line(&mut line).unwrap();
    let address = line.split("http://").nth(1).and_then(|rest| rest.split('/').next()).unwrap().to_owned();
    assert!(address.starts_with("127.0.0.1:"), "{line}");
    let ask = || {
        let mut stream = TcpStream::connect(&address).unwrap();
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    };
    for _ in 0..2 {
        let text = ask();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(
            head.starts_with("HTTP/1.1 200 OK") && head.contains(&format!("Content-Length: {}", body.len())),
            "{head}"
        );
        assert_eq!(value(&parsed(body), "tracepoint_events_total", &json!({ "event": "web:idle" })), 20.0);
        // A peer that says nothing and one that breaks off do no harm.
        drop(TcpStream::connect(&address).unwrap());
    }
    std::fs::remove_dir_all(&directory).unwrap();
    assert!(ask().starts_with("HTTP/1.1 500 "));
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(server.id().cast_signed()), nix::sys::signal::SIGINT).unwrap();
    assert_eq!(server.wait().unwrap().code(), Some(0));
}
