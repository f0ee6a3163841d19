//! The metrics of `tracectl stat` and `hist`, read by Prometheus's own parser.

use super::{answered, requests, run, trace};
use crate::prometheus::{address, asked, parsed, scraped, value};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};

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
    assert_eq!(value(&sizes, "tracepoint_values_sum", &all), 499_507.0);
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
    let address = address(&line);
    assert!(address.starts_with("127.0.0.1:"), "{line}");
    for _ in 0..2 {
        let (head, body) = scraped(&address);
        assert!(
            head.starts_with("HTTP/1.1 200 OK") && head.contains(&format!("Content-Length: {}", body.len())),
            "{head}"
        );
        assert_eq!(value(&parsed(&body), "tracepoint_events_total", &json!({ "event": "web:idle" })), 20.0);
        // A silent peer and one that disconnects do no harm.
        drop(TcpStream::connect(&address).unwrap());
    }
    // The server handles 64 connections at a time. With 100 partial requests open, it still answers another one, and the newest of the 100.
    let begun = |_| {
        let mut stream = TcpStream::connect(&address).unwrap();
        stream.write_all(b"GET /metrics HTT").unwrap();
        stream
    };
    let mut half_open: Vec<_> = (0..100).map(begun).collect();
    let (full, body) = scraped(&address);
    let mut last = half_open.pop().unwrap();
    last.write_all(b"P/1.1\r\n\r\n").unwrap();
    let mut answer = String::new();
    last.read_to_string(&mut answer).unwrap();
    assert_eq!(answer, format!("{full}\r\n\r\n{body}"), "its connection was not given up for those before");
    // The oldest one was closed.
    assert_eq!(half_open[0].read(&mut [0]).unwrap_or(0), 0);
    assert_eq!(asked(&address, "HEAD /metrics"), (full, String::new()), "{body}");
    for (request, status, part) in [
        ("GET /", "404 Not Found", "the metrics are at /metrics"),
        ("HEAD /stat", "404 Not Found", ""),
        ("POST /metrics", "405 Method Not Allowed", "use GET or HEAD"),
    ] {
        let (head, body) = asked(&address, request);
        assert!(head.starts_with(&format!("HTTP/1.1 {status}\r\n")) && body.contains(part), "{request}: {head} {body}");
    }
    std::fs::remove_dir_all(&directory).unwrap();
    assert!(scraped(&address).0.starts_with("HTTP/1.1 500 "));
    kill_process(Pid::from_child(&server), Signal::INT).unwrap();
    assert_eq!(server.wait().unwrap().code(), Some(0));
}
