//! A program that records and streams by itself is killed: recovery takes into account what its collector has stored.

use crate::running::{Collect, Running};
use crate::streams::{events, stream, tracectl};
use crate::{TRACED, is_traced, wait_for};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;
use tempfile::TempDir;
use tracepoint::sinks::StreamSink;
use tracepoint::sinks::stream::StreamOptions;
use tracepoint::{Channel, Session};

/// Set in a traced program with a session in code: its streaming destination.
const IN_CODE: &str = "TEST_IN_CODE";
/// More events than its rings can hold.
const MANY: u64 = 20_000;

/// Number of events reported as acknowledged.
fn acknowledged(streams: &Value) -> u64 {
    let lists = streams.as_array().into_iter().flatten().filter_map(|stream| stream["acknowledged"].as_array());
    lists.flatten().filter_map(|stream| stream[2].as_u64()).sum()
}

/// The list next to the rings of the only process of a session.
fn list(place: &Path, session: &str) -> Option<Value> {
    let mut rings = fs::read_dir(place.join("run/sessions").join(session).join("rings")).ok()?;
    let text = rings.find_map(|entry| fs::read(entry.ok()?.path().join("streams.json")).ok())?;
    serde_json::from_slice(&text).ok()
}

/// Kills the program after its collector has stalled, and compares the recovered events with the stored ones.
fn kill_and_recover(place: &Path, session: &str, mut program: Running, collect: Collect) {
    let known = wait_for(|| list(place, session).map(|list| acknowledged(&list)).filter(|events| *events > MANY));
    let signal = |signal| kill_process(Pid::from_child(&collect.program.0), signal).unwrap();
    signal(Signal::STOP);
    // The drain continues to take packets.
    sleep(Duration::from_secs(1));
    program.0.kill().unwrap();
    program.0.wait().unwrap();
    signal(Signal::CONT);
    let rings = place.join("run/sessions").join(session);
    let recovered = place.join("recovered");
    let output = tracectl(place, &["recover", "--json", rings.to_str().unwrap(), "-o", recovered.to_str().unwrap()]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let number = |name: &str| report["processes"][0][name].as_u64().unwrap();
    let [kept, missing, at_peer] = ["records", "missing", "acknowledged"].map(number);
    assert!(missing > 0 && at_peer + kept >= known, "{report}");
    collect.end();
    let stored = events(place, "stored");
    assert!(at_peer <= stored.len() as u64, "{at_peer} events are said to be stored, and {} are", stored.len());
    let both = events(place, "recovered").union(&stored).count() as u64;
    let all = kept + missing + at_peer;
    assert!(both >= all - missing && both <= all, "{both} of {all} are there, {missing} are said to be missing");
}

fn program(place: &Path, test: &str) -> Command {
    let mut program = Command::new(env::current_exe().unwrap());
    program.args([test, "--exact"]).env(TRACED, "1000000 100").env("TRACEPOINT_RUN_DIR", place.join("run"));
    program
}

#[test]
fn what_a_session_in_code_had_sent_is_known() {
    if let Ok(to) = env::var(IN_CODE) {
        let sink = StreamSink::new(StreamOptions::to(to.parse().unwrap())).unwrap();
        let session = Session::builder("inside").events("network:*").channel(Channel::discard(64 << 10)).sink(sink);
        let _session = session.start().unwrap();
        is_traced();
        return;
    }
    let place = TempDir::new_in("/dev/shm").unwrap();
    let place = place.path();
    let collect = Collect::start(place);
    let mut program = program(place, "killed_sender::what_a_session_in_code_had_sent_is_known");
    let program = Running::start(program.env(IN_CODE, collect.to()), &place.join("program"));
    kill_and_recover(place, "inside", program, collect);
}

#[test]
fn what_a_program_of_a_named_session_had_sent_is_known() {
    if is_traced() {
        return;
    }
    let place = TempDir::new_in("/dev/shm").unwrap();
    let place = place.path();
    let collect = Collect::start(place);
    let create =
        ["create", "shop", "-e", "network:*", "--ring-size", "64K", "--stream", &collect.to(), "--start", "--wait"];
    let created = tracectl(place, &create);
    assert!(created.status.success(), "{}", String::from_utf8_lossy(&created.stderr));
    let mut program = program(place, "killed_sender::what_a_program_of_a_named_session_had_sent_is_known");
    let program = Running::start(&mut program, &place.join("program"));
    stream(place, |stream| stream["packets"].as_u64() > Some(0));
    kill_and_recover(place, "shop", program, collect);
}
