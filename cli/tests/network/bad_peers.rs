//! Collectors that cannot be reached or cannot store: messages to the sender's user, and the fate of the events.

use crate::running::{Collect, Running, TRACECTL};
use crate::streams::{stream, tracectl};
use crate::{TRACED, is_traced, wait_for};
use serde_json::Value;
use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

/// Runs `record` with a command; returns the exit code and its messages.
fn record(place: &Path, to: &str, command: &[&str], traced: &str) -> (Option<i32>, String) {
    let mut record = Command::new(TRACECTL);
    record.args(["record", "-e", "network:*", "--stream", to, "--"]).args(command);
    record.env("TRACEPOINT_RUN_DIR", place.join("run")).env(TRACED, traced);
    let output = record.output().unwrap();
    let [stdout, stderr] = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    (output.status.code(), stdout + &stderr)
}

#[test]
fn a_name_that_is_too_long_and_a_refused_port_are_told() {
    if is_traced() {
        return;
    }
    let place = TempDir::new_in("/dev/shm").unwrap();
    let place = place.path();
    let (long, started) = ("x".repeat(300), place.join("started"));
    let (code, told) = record(place, &long, &["touch", started.to_str().unwrap()], "");
    assert_eq!(code, Some(2), "{told}");
    assert!(told.contains("the name of a host has at most 253 bytes, and this one has 300"), "{told}");
    let created = tracectl(place, &["create", "shop", "-e", "network:*", "--stream", &long]);
    assert_eq!(created.status.code(), Some(2));
    assert!(!started.exists() && !place.join("run").exists(), "nothing was begun");
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let own = std::env::current_exe().unwrap();
    let test = "bad_peers::a_name_that_is_too_long_and_a_refused_port_are_told";
    // Repeated, because the process may end before the recorder knows it.
    for _ in 0..10 {
        let (code, told) = record(place, &free.to_string(), &[own.to_str().unwrap(), test, "--exact"], "10 100");
        assert_eq!(code, Some(6), "{told}");
        assert!(told.contains(&format!("not recorded: cannot stream to {free}: Connection refused")), "{told}");
        assert!(told.contains("`--retry TIME`"), "{told}");
        // The events of its two threads.
        assert!(told.contains("\n0 events of 1 process, 20 lost (100.0 %)\n"), "{told}");
    }
    // Nothing is stored, and the rings still have the events.
    let mut command = Command::new(TRACECTL);
    command.args(["record", "-e", "network:*", "--retry", "200ms", "-o", "both", "--stream", &free.to_string(), "--"]);
    command.arg(own).args([test, "--exact"]).current_dir(place).env("TRACEPOINT_RUN_DIR", place.join("run"));
    let output = command.env(TRACED, "10 100").output().unwrap();
    let told = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
    println!("{told}");
    assert!(told.contains("0 events of 1 process, 20 lost") && !told.contains("view them with"), "{told}");
    assert!(told.contains("tracectl recover record-"), "{told}");
}

/// A collector on a separate file system that has very little free space.
fn collect(place: &Path) -> Collect {
    let full = place.join("full");
    fs::create_dir(&full).unwrap();
    let script = "mount -t tmpfs -o size=8m full \"$1\" && head -c 7800000 /dev/zero >\"$1/ballast\" && exec \"$2\" collect --json \
                  --live 127.0.0.1:0 --control 127.0.0.1:0 --data 127.0.0.1:0 -o \"$1/stored\"";
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", script, "sh"]).arg(&full).arg(TRACECTL);
    Collect::listening(&mut command, &place.join("collect"))
}

/// `Some` once the only process has counted lost events.
fn lost_in_rings(place: &Path) -> Option<()> {
    let status: Value = serde_json::from_slice(&tracectl(place, &["status", "--json"]).stdout).ok()?;
    let lost = status["sessions"][0]["processes"][0]["counters"]["lost"].as_object()?;
    (!lost.is_empty()).then_some(())
}

#[test]
fn a_full_disk_of_the_collector_is_told_and_the_rings_keep_to_their_policy() {
    if is_traced() {
        return;
    }
    let place = TempDir::new_in("/dev/shm").unwrap();
    let place = place.path();
    let collect = collect(place);
    let test = "bad_peers::a_full_disk_of_the_collector_is_told_and_the_rings_keep_to_their_policy";
    let mut record = Command::new(TRACECTL);
    record.args(["record", "--json", "-e", "network:*", "--stream", &collect.to(), "--sync-interval", "100ms"]);
    record
        .args(["--ring-size", "64K", "--overflow", "0", "--resend-buffer", "64K", "--"])
        .arg(std::env::current_exe().unwrap());
    record.args([test, "--exact"]).env(TRACED, "1000000 100").env("TRACEPOINT_RUN_DIR", place.join("run"));
    let mut record = Running::start(&mut record, &place.join("record"));
    let trouble = |stream: &Value| stream["trouble"].as_str().map(str::to_owned);
    let is_full = |stream: &Value| trouble(stream).is_some_and(|why| why.contains("No space left on device"));
    // The next packet does not fit.
    let (_, full) = stream(place, |stream| is_full(stream) && stream["waiting"].as_u64() > Some(48 << 10));
    assert!(trouble(&full).unwrap().starts_with("the collector cannot store: "), "{full}");
    let shown = String::from_utf8(tracectl(place, &["status"]).stdout).unwrap();
    assert!(shown.contains("; the collector cannot store: No space left on device"), "{shown}");
    let told = fs::read_to_string(place.join("collect.errors")).unwrap();
    assert!(told.contains("cannot write: No space left on device") && told.contains("senders wait until"), "{told}");
    // The rings hold as much as possible, and the rest is counted.
    wait_for(|| lost_in_rings(place));
    let there = format!("/proc/{}/root{}", collect.program.0.id(), place.join("full").display());
    fs::remove_file(Path::new(&there).join("ballast")).unwrap();
    let stored = full["bytes"].as_u64().unwrap();
    stream(place, |stream| trouble(stream).is_none() && stream["bytes"].as_u64() > Some(stored + 100_000));
    record.interrupt();
    wait_for(|| record.0.try_wait().unwrap());
    let report = fs::read_to_string(place.join("record")).unwrap();
    let report: Value = serde_json::from_str(report.lines().last().unwrap()).unwrap();
    let viewed = tracectl(place, &["view", "--json", &format!("{there}/stored")]);
    let viewed = String::from_utf8(viewed.stdout).unwrap();
    let events = viewed.lines().filter(|line| line.contains("\"type\":\"event\"")).count() as u64;
    let [recorded, lost] = ["recorded", "lost"].map(|name| report[name].as_u64().unwrap());
    assert_eq!(events, recorded, "{report}");
    assert!(lost > 0 && report["failures"].as_array().is_some_and(Vec::is_empty), "{report}");
    drop(collect);
}
