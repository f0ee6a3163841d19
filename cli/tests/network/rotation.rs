//! Chunks of collected traces: each is readable alone, and a collector killed at any moment neither loses nor repeats anything.

use crate::running::{ANY, Collect, Running, TRACECTL};
use crate::streams::{events, tracectl};
use crate::{TRACED, is_traced, seed, wait_for};
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;
use tempfile::TempDir;

/// Records a program with this many events of each thread.
fn record(place: &Path, to: &str, test: &str, events: u64) -> Running {
    let mut record = Command::new(TRACECTL);
    record.args(["record", "-e", "network:*", "--stream", to, "--sync-interval", "50ms", "--retry", "30s", "--"]);
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

fn finish(place: &Path, mut record: Running, collect: Collect) {
    let status = wait_for(|| record.0.try_wait().unwrap());
    assert!(status.success(), "{status}: {}", fs::read_to_string(place.join("record.errors")).unwrap());
    let status = collect.end();
    let errors = fs::read_to_string(place.join("collect.errors")).unwrap();
    assert!(status.code().is_some_and(|code| code <= 1), "{errors}");
    assert!(!errors.contains("cannot "), "{errors}");
}

/// Checks that all chunks together balance and that each is readable alone; returns their number of events. A collector killed before the first
/// packet of a chunk leaves it empty, which may happen `kills` times; so does a trace that ends directly after a rotation.
fn check(place: &Path, kills: usize) -> u64 {
    let verified = tracectl(place, &["verify", place.join("stored").to_str().unwrap()]);
    let said = String::from_utf8_lossy(&verified.stdout).into_owned() + &String::from_utf8_lossy(&verified.stderr);
    assert!(verified.status.success(), "{said}");
    let (mut sum, mut empty) = (0, Vec::new());
    let chunks = chunks(place);
    for chunk in &chunks {
        let own = events(place, chunk.strip_prefix(place).unwrap().to_str().unwrap()).len() as u64;
        let babeltrace = Command::new("babeltrace2").arg(chunk).output().expect("babeltrace2 runs");
        assert!(babeltrace.status.success(), "{}", String::from_utf8_lossy(&babeltrace.stderr));
        assert_eq!(String::from_utf8_lossy(&babeltrace.stdout).lines().count() as u64, own, "{}", chunk.display());
        assert!(tracectl(place, &["verify", chunk.to_str().unwrap()]).status.success(), "{}", chunk.display());
        sum += own;
        if own == 0 {
            empty.push(chunk);
        }
    }
    empty.retain(|chunk| Some(*chunk) != chunks.last());
    assert!(empty.len() <= kills, "{empty:?} are empty");
    sum
}

/// How often the collector is killed.
const KILLS: usize = 8;

#[test]
fn a_collector_that_is_killed_while_it_rotates_loses_and_repeats_nothing() {
    if is_traced() {
        return;
    }
    let place = TempDir::new_in("/dev/shm").unwrap();
    let place = place.path();
    let mut random = seed::seed() | 1;
    let options = ["--rotate-size", "16K"];
    let mut collector = Collect::at(place, "collect", [ANY, ANY], &options);
    let at = ["control", "data"].map(|of| collector.address(of).to_owned());
    let test = "rotation::a_collector_that_is_killed_while_it_rotates_loses_and_repeats_nothing";
    let record = record(place, &collector.to(), test, 10_000);
    wait_for(|| (chunks(place).len() > 2).then_some(()));
    for _ in 0..KILLS {
        // In the first kills, a new chunk has appeared; later ones happen at any moment.
        let known = chunks(place).len();
        wait_for(|| (chunks(place).len() > known).then_some(()));
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        sleep(Duration::from_micros((random >> 33) % 60_000));
        collector.program.0.kill().unwrap();
        collector.program.0.wait().unwrap();
        collector = Collect::at(place, "collect", [&at[0], &at[1]], &options);
    }
    finish(place, record, collector);
    assert_eq!(check(place, KILLS), 20_000);
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
        let collector = Collect::at(place, "collect", [ANY, ANY], options);
        let record = record(place, &collector.to(), "rotation::old_chunks_give_way_to_new_ones", 6000);
        finish(place, record, collector);
        let kept = chunks(place);
        assert!(!kept[0].ends_with("chunk-000001") && kept.len() > 1, "{kept:?}");
        assert!(kept.len() <= options[3].parse().unwrap(), "{kept:?}");
        let sum = check(place, 0);
        assert!(sum > 500 && sum < 12_000, "{sum} events");
    }
}
