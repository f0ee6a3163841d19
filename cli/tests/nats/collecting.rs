//! From a program over a broker to a collector.

use crate::broker::{Broker, is_there};
use crate::programs::{Collect, Record, Running, tracectl};
use crate::stored::{accounts, assert_once, assert_verified, traces};
use crate::{TRACED, is_traced, wait_for};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;
use tempfile::TempDir;

#[test]
fn a_trace_is_stored_whole_and_the_broker_forgets_it() {
    if is_traced() || !is_there() {
        return;
    }
    let place = TempDir::new_in("/dev/shm").unwrap();
    let place = place.path();
    let broker = Broker::start(place);
    let collect = Collect::start(place, "a", &broker.url(), &[]);
    let test = "collecting::a_trace_is_stored_whole_and_the_broker_forgets_it";
    let report = Record::start(place, "record", &broker.url(), (test, "20000 10"), &[]).finish();
    assert_eq!((report["recorded"].as_u64(), report["lost"].as_u64()), (Some(40_000), Some(0)), "{report}");
    wait_for("the broker has nothing left", || (broker.state().messages == 0).then_some(()));
    let output = collect.output.clone();
    let counts = collect.end();
    assert_eq!((counts["late"].as_u64(), counts["missing"].as_u64()), (Some(0), Some(0)), "{counts}");
    assert_once(&[&output], 20_000, "one collector");
    assert_eq!(accounts(&[&output]), (40_000, 0));
    assert_verified(place, &[&output]);
    assert_eq!(traces(&output).len(), 1);
}

/// The value of a collector's metric.
pub(crate) fn metric(address: &str, name: &str) -> Option<u64> {
    let mut connection = TcpStream::connect(address).ok()?;
    connection.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").ok()?;
    let mut text = String::new();
    connection.read_to_string(&mut text).ok()?;
    text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok())
}

#[test]
fn a_collector_that_comes_late_gets_everything_and_its_status_tells_how_far_it_is() {
    if is_traced() || !is_there() {
        return;
    }
    let place = TempDir::new_in("/dev/shm").unwrap();
    let place = place.path();
    let broker = Broker::start(place);
    let test = "collecting::a_collector_that_comes_late_gets_everything_and_its_status_tells_how_far_it_is";
    let mut record = Record::start(place, "record", &broker.url(), (test, "20000 100"), &[]);
    let url = broker.url();
    let (sent, line) = wait_for("packets are published", || {
        let status: Value = serde_json::from_slice(&tracectl(place, &["status", "--json"]).stdout).ok()?;
        let stream = &status["recorders"][0]["processes"][0]["streams"][0];
        let stream = if stream.is_null() { find(&status, "streams")? } else { stream.clone() };
        let sent = stream["packets"].as_u64().filter(|packets| *packets > 4)?;
        Some((sent, String::from_utf8(tracectl(place, &["status"]).stdout).unwrap()))
    });
    assert!(sent > 4 && line.contains(&format!("streams to {url} (connected to broker one at {url})")), "{line}");
    assert!(broker.state().messages > 4);
    // After everything else.
    record.program.wait("the recording ends");
    let collect = Collect::start(place, "a", &broker.url(), &["--metrics", "127.0.0.1:0"]);
    wait_for("the broker has nothing left", || (broker.state().messages == 0).then_some(()));
    let address = collect.metrics();
    assert_eq!(metric(&address, "tracepoint_collector_nats_connected"), Some(1));
    wait_for("no trace is left", || metric(&address, "tracepoint_collector_nats_traces").filter(|traces| *traces == 0));
    let output = collect.output.clone();
    collect.end();
    assert_once(&[&output], 20_000, "a late collector");
    assert_verified(place, &[&output]);
}

/// The first object of a list with this name, anywhere in a value.
fn find(value: &Value, name: &str) -> Option<Value> {
    match value {
        Value::Object(fields) => {
            let here = fields.get(name).and_then(|list| list.as_array()?.first().cloned());
            here.or_else(|| fields.values().find_map(|field| find(field, name)))
        }
        Value::Array(list) => list.iter().find_map(|item| find(item, name)),
        _ => None,
    }
}

#[test]
fn a_named_session_publishes_from_each_process() {
    if is_traced() || !is_there() {
        return;
    }
    let place = TempDir::new_in("/dev/shm").unwrap();
    let place = place.path();
    let broker = Broker::start(place);
    let collect = Collect::start(place, "a", &broker.url(), &[]);
    let created = tracectl(place, &["create", "shop.1", "--wait", "-e", "brokered:*", "--nats", &broker.url()]);
    assert!(created.status.success(), "{}", String::from_utf8_lossy(&created.stderr));
    let started = tracectl(place, &["start", "shop.1"]);
    assert!(started.status.success(), "{}", String::from_utf8_lossy(&started.stderr));
    let test = "collecting::a_named_session_publishes_from_each_process";
    let mut programs: Vec<_> = (0..2)
        .map(|number| {
            let mut command = Command::new(std::env::current_exe().unwrap());
            command.args([test, "--exact"]).env(TRACED, "2000 10").env("TRACEPOINT_RUN_DIR", place.join("run"));
            Running::start(&mut command, &place.join(format!("program{number}")))
        })
        .collect();
    for program in &mut programs {
        assert!(program.wait("the program ends").success());
    }
    assert!(tracectl(place, &["destroy", "shop.1"]).status.success());
    wait_for("the broker has nothing left", || (broker.state().messages == 0).then_some(()));
    let output = collect.output.clone();
    collect.end();
    let traces = traces(&output);
    assert_eq!(traces.len(), 2, "a trace for each process: {traces:?}");
    for trace in &traces {
        assert_once(&[trace], 2000, "a process");
        assert!(trace.to_str().unwrap().contains("/shop.1/"), "{trace:?}");
    }
    assert_verified(place, &[&output]);
}

#[test]
fn what_is_published_twice_is_stored_once() {
    if is_traced() || !is_there() {
        return;
    }
    let place = TempDir::new_in("/dev/shm").unwrap();
    let place = place.path();
    let broker = Broker::start(place);
    let test = "collecting::what_is_published_twice_is_stored_once";
    let report = Record::start(place, "record", &broker.url(), (test, "5000 10"), &[]).finish();
    assert_eq!(report["recorded"].as_u64(), Some(10_000), "{report}");
    let messages = broker.state().messages;
    let (again, other_ids) = broker.ask(|context| async move {
        let stream = context.get_stream("TRACEPOINT").await.unwrap();
        let (mut again, mut other_ids) = (0, 0);
        for sequence in 1..=messages {
            let message = stream.get_raw_message(sequence).await.unwrap();
            let headers = message.headers.clone();
            assert!(headers.get(async_nats::header::NATS_MESSAGE_ID).is_some(), "{sequence}: {headers:?}");
            let ack = context.publish_with_headers(message.subject.clone(), headers, message.payload.clone()).await;
            assert!(ack.unwrap().await.unwrap().duplicate, "{sequence}");
            again += 1;
            if !message.subject.contains(".=") {
                // As after the duplicate window.
                assert!(!context.publish(message.subject, message.payload).await.unwrap().await.unwrap().duplicate);
                other_ids += 1;
            }
        }
        (again, other_ids)
    });
    assert!(again == messages && other_ids > 2, "{again} {other_ids}");
    assert_eq!(broker.state().messages, messages + other_ids);
    let collect = Collect::start(place, "a", &broker.url(), &[]);
    wait_for("the broker has nothing left", || (broker.state().messages == 0).then_some(()));
    let output = collect.output.clone();
    let counts = collect.end();
    assert_once(&[&output], 5000, "published twice");
    assert_eq!(counts["damaged"].as_u64(), Some(0), "{counts}");
    assert_verified(place, &[&output]);
}
