//! An independent parser of metrics: Prometheus's own, from Debian's package `python3-prometheus-client`.

use serde_json::Value;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};

/// Reads metrics with Prometheus's own parser, which is stricter for the newer format. Writes name, labels and value of each sample.
const PARSE: &str = "import json, sys
from prometheus_client.parser import text_string_to_metric_families
families = list(text_string_to_metric_families(sys.stdin.read()))
names = [family.name for family in families]
assert len(names) == len(set(names)), names
assert all(family.type in ('counter', 'gauge', 'histogram') and family.documentation for family in families), families
print(json.dumps([[s.name, dict(sorted(s.labels.items())), s.value] for family in families for s in family.samples]))";

/// A sample: its name, labels and value.
pub(crate) type Sample = (String, Value, Value);

/// The samples by name and labels.
pub(crate) fn parsed(metrics: &str) -> Vec<Sample> {
    let mut parser = Command::new("/usr/bin/python3");
    let parser = parser.args(["-c", PARSE]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut parser = parser.spawn().expect("python3, and python3-prometheus-client: scripts/setup.sh installs it");
    parser.stdin.take().unwrap().write_all(metrics.as_bytes()).unwrap();
    let output = parser.wait_with_output().unwrap();
    assert!(output.status.success(), "{metrics}\n{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The value of the only sample with this name and these labels.
pub(crate) fn value(samples: &[Sample], name: &str, labels: &Value) -> Value {
    let mut found = samples.iter().filter(|(other, others, _)| other == name && others == labels);
    let (Some((_, _, value)), None) = (found.next(), found.next()) else { panic!("{name} {labels} in {samples:?}") };
    value.clone()
}

/// Requests the metrics of a server. Returns the head and the body of its answer.
pub(crate) fn scraped(address: &str) -> (String, String) {
    asked(address, "GET /metrics")
}

/// Sends a request line with method and path to a server.
pub(crate) fn asked(address: &str, request: &str) -> (String, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(format!("{request} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    (head.to_owned(), body.to_owned())
}

/// The address in the message of a server that has just begun to serve.
pub(crate) fn address(line: &str) -> String {
    let rest = line.split("http://").nth(1).unwrap_or_else(|| panic!("no address in {line}"));
    rest.split('/').next().unwrap_or_default().to_owned()
}
