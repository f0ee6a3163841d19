//! Chunks of collected traces: each can be read by itself, and a collector that is killed at any moment loses and repeats nothing.

use crate::running::{Running, TRACECTL};
use crate::streams::{events, tracectl};
use crate::{TRACED, is_traced, seed, wait_for};
use serde_json::Value;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;
use tempfile::TempDir;

/// A collector at these addresses with these options; where it listens for control and data.
fn collect(place: &Path, at: [&str; 2], options: &[&str]) -> (Running, [String; 2]) {
    let mut command = Command::new(TRACECTL);
    command.args(["collect", "--json", "--live", "127.0.0.1:0", "--control", at[0], "--data", at[1]]).args(options);
    command.arg("-o").arg(place.join("stored"));
    let collect = Running::start(&mut command, &place.join("collect"));
    let first = wait_for(|| fs::read_to_string(place.join("collect")).ok().filter(|text| text.contains('\n')));
    let first: Value = serde_json::from_str(first.lines().next().unwrap()).unwrap();
    (collect, ["control", "data"].map(|what| first[what].as_str().unwrap().to_owned()))
}

/// A program with so many events of each thread, which is recorded there.
fn record(place: &Path, to: &[String; 2], test: &str, events: u64) -> Running {
    let to = format!("{}:{}", to[0], to[1].rsplit_once(':').unwrap().1);
    let mut record = Command::new(TRACECTL);
    record.args(["record", "-e", "network:*", "--stream", &to, "--sync-interval", "50ms", "--retry", "30s", "--"]);
    record.arg(env::current_exe().unwrap()).args([test, "--exact"]);
    record.env(TRACED, format!("{events} 300")).env("TRACEPOINT_RUN_DIR", place.join("run"));
    Running::start(&mut record, &place.join("record"))
}

/// The chunks of the only trace, in order.
fn chunks(place: &Path) -> Vec<PathBuf> {
    let mut directory = place.join("stored");
    for _ in 0..3 {
        let Ok(entries) = fs::read_dir(&directory) else { return Vec::new() };
        let Some(entry) = entries.flatten().next() else { return Vec::new() };
        directory = entry.path();
    }
    let entries = fs::read_dir(&directory).into_iter().flatten().flatten().map(|entry| entry.path());
    let is_chunk = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().starts_with("chunk-");
    let mut chunks: Vec<_> = entries.filter(is_chunk).collect();
    chunks.sort();
    chunks
}

fn finish(place: &Path, mut record: Running, mut collect: Running) {
    let status = wait_for(|| record.0.try_wait().unwrap());
    assert!(status.success(), "{status}: {}", fs::read_to_string(place.join("record.errors")).unwrap());
    collect.interrupt();
    let status = wait_for(|| collect.0.try_wait().unwrap());
    let errors = fs::read_to_string(place.join("collect.errors")).unwrap();
    assert!(status.code().is_some_and(|code| code <= 1), "{errors}");
    assert!(!errors.contains("cannot "), "{errors}");
}

/// All chunks together balance, and each is read by itself; the events in them.
fn check(place: &Path) -> u64 {
    let verified = tracectl(place, &["verify", place.join("stored").to_str().unwrap()]);
    let said = String::from_utf8_lossy(&verified.stdout).into_owned() + &String::from_utf8_lossy(&verified.stderr);
    assert!(verified.status.success(), "{said}");
    let mut sum = 0;
    for chunk in chunks(place) {
        let own = events(place, chunk.strip_prefix(place).unwrap().to_str().unwrap()).len() as u64;
        let babeltrace = Command::new("babeltrace2").arg(&chunk).output().expect("babeltrace2 runs");
        assert!(babeltrace.status.success(), "{}", String::from_utf8_lossy(&babeltrace.stderr));
        assert_eq!(String::from_utf8_lossy(&babeltrace.stdout).lines().count() as u64, own, "{}", chunk.display());
        assert!(own > 0, "{} is empty", chunk.display());
        assert!(tracectl(place, &["verify", chunk.to_str().unwrap()]).status.success(), "{}", chunk.display());
        sum += own;
    }
    sum
}

#[test]
fn a_collector_that_is_killed_while_it_rotates_loses_and_repeats_nothing() {
    if is_traced() {
        return;
    }
    let place = TempDir::new_in("/dev/shm").unwrap();
    let place = place.path();
    let mut random = seed::seed() | 1;
    let options = ["--rotate-size", "16K"];
    let (mut collector, at) = collect(place, ["127.0.0.1:0", "127.0.0.1:0"], &options);
    let test = "rotation::a_collector_that_is_killed_while_it_rotates_loses_and_repeats_nothing";
    let record = record(place, &at, test, 10_000);
    wait_for(|| (chunks(place).len() > 2).then_some(()));
    for _ in 0..8 {
        // Another number of chunks is there each time; then at any moment.
        let known = chunks(place).len();
        wait_for(|| (chunks(place).len() > known).then_some(()));
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        sleep(Duration::from_micros((random >> 33) % 60_000));
        collector.0.kill().unwrap();
        collector.0.wait().unwrap();
        collector = collect(place, [&at[0], &at[1]], &options).0;
    }
    finish(place, record, collector);
    assert_eq!(check(place), 20_000);
    assert_eq!(events(place, "stored").len(), 20_000);
}

#[test]
fn old_chunks_give_way_to_new_ones() {
    if is_traced() {
        return;
    }
    for options in
        [&["--rotate-size", "16K", "--keep", "3"][..], &["--rotate-size", "8K", "--keep", "90", "--quota", "150K"]]
    {
        let place = TempDir::new_in("/dev/shm").unwrap();
        let place = place.path();
        let (collector, at) = collect(place, ["127.0.0.1:0", "127.0.0.1:0"], options);
        let record = record(place, &at, "rotation::old_chunks_give_way_to_new_ones", 6000);
        finish(place, record, collector);
        let kept = chunks(place);
        assert!(!kept[0].ends_with("chunk-000001") && kept.len() > 1, "{kept:?}");
        assert!(kept.len() <= options[3].parse().unwrap(), "{kept:?}");
        let sum = check(place);
        assert!(sum > 500 && sum < 12_000, "{sum} events");
    }
}
