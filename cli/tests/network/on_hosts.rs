//! `record --on`: one command in the central namespace records on two hosts, and collects there.

use crate::hosts::Hosts;
use crate::running::{Running, TRACECTL};
use crate::{TRACED, is_traced, wait_for};
use serde_json::Value;
use std::env;
use std::fs;
use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// `record --on` for two hosts, each with a program whose two threads fire `events` events each. The program's name contains shell
/// metacharacters.
fn record(hosts: &Hosts, place: &Path, test: &str, events: u64, options: &[&str]) -> Running {
    let program = place.join("a program's $name; `x` \"y\"");
    fs::copy(env::current_exe().unwrap(), &program).unwrap();
    let mut command = hosts.command(0, TRACECTL);
    let names = [1, 2].map(|host| hosts.namespace(host)).join(",");
    command.args(["record", "--on", &names, "--rsh", "ip netns exec", "--remote-tracectl", TRACECTL, "--json"]);
    command.args(["--collect-at", &Hosts::middle(1), "-e", "network:*", "--filter", "n >= 0 && thread < 2"]);
    command.args(options).args(["--sync-interval", "50ms", "-o"]).arg(place.join("stored")).arg("--").arg(program);
    command.args([test, "--exact", "--nocapture"]);
    command.env("TRACEPOINT_RUN_DIR", place.join("run")).env(TRACED, format!("{events} 1000"));
    Running::start(&mut command, &place.join("record"))
}

/// The objects of `view --json`.
fn view(options: &[&str], stored: &Path) -> impl Iterator<Item = Value> + use<> {
    let view = Command::new(TRACECTL).args(["view", "--json"]).args(options).arg(stored).output().unwrap();
    assert!(view.status.success(), "{}", String::from_utf8_lossy(&view.stderr));
    serde_json::Deserializer::from_reader(Cursor::new(view.stdout)).into_iter().map(Result::unwrap)
}

/// The number of events, which must be in time order.
fn viewed(stored: &Path) -> u64 {
    let (mut last, mut count) = (i64::MIN, 0);
    for event in view(&[], stored) {
        if event["type"] == "event" {
            let time = event["time_ns"].as_i64().unwrap();
            assert!(time >= last, "time goes back: {event}");
            (last, count) = (time, count + 1);
        }
    }
    count
}

/// The traces below the output: one for each process.
fn traces(stored: &Path) -> Vec<PathBuf> {
    let below = |dir: PathBuf| fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut traces: Vec<_> = below(stored.to_owned()).flat_map(below).flat_map(below).collect();
    traces.sort();
    traces
}

fn report(place: &Path) -> Value {
    let text = fs::read_to_string(place.join("record")).unwrap();
    let errors = fs::read_to_string(place.join("record.errors")).unwrap();
    serde_json::from_str(&text).unwrap_or_else(|_| panic!("{text}{errors}"))
}

#[test]
fn one_command_records_on_two_hosts_and_one_view_merges_them() {
    if is_traced() {
        return;
    }
    let Some(hosts) = Hosts::new(2) else { return };
    let place = TempDir::new_in("/dev/shm").unwrap();
    let test = "on_hosts::one_command_records_on_two_hosts_and_one_view_merges_them";
    let mut record = record(&hosts, place.path(), test, 500, &[]);
    let status = wait_for(|| record.0.try_wait().unwrap());
    let report = report(place.path());
    assert!(status.success(), "{status}: {report}");
    for (index, host) in [1, 2].into_iter().enumerate() {
        let host_report = &report["hosts"][index];
        assert_eq!(host_report["host"], hosts.namespace(host));
        assert_eq!(host_report["exit_code"], 0, "{host_report}");
        assert_eq!(
            (host_report["report"]["recorded"].as_u64(), host_report["report"]["lost"].as_u64()),
            (Some(1000), Some(0))
        );
    }
    let errors = fs::read_to_string(place.path().join("record.errors")).unwrap();
    let printed = format!("{}: test {test} ... ok", hosts.namespace(1));
    assert!(errors.contains(&printed), "what a program prints comes with the name of its host: {errors}");
    let stored = place.path().join("stored");
    assert_eq!(traces(&stored).iter().map(|trace| viewed(trace)).collect::<Vec<_>>(), [1000, 1000]);
    assert_eq!(viewed(&stored), 2000, "one view merges both");
}

#[test]
fn a_host_with_another_time_of_day_is_put_right() {
    const OFF: i64 = 5_000_000_000;
    if is_traced() {
        return;
    }
    let Some(hosts) = Hosts::new(2) else { return };
    let place = TempDir::new_in("/dev/shm").unwrap();
    let test = "on_hosts::a_host_with_another_time_of_day_is_put_right";
    let mut record = record(&hosts, place.path(), test, 200, &[]);
    assert!(wait_for(|| record.0.try_wait().unwrap()).success());
    let stored = place.path().join("stored");
    for clock in view(&["--clocks"], &stored) {
        let [correction, bound] = ["correction_ns", "bound_ns"].map(|name| clock[name].as_i64().unwrap());
        // Both are on this machine. The offset in the metadata was measured by reading one clock after the other.
        assert!(correction.abs() <= bound + 1_000_000 && bound < 1_000_000_000, "{clock}");
    }
    // As if the second host had a separate clock, with its time of day 5 s behind.
    let other = traces(&stored)[1].join("metadata");
    let metadata = fs::read_to_string(&other).unwrap();
    let clock = &metadata[metadata.find("clock {").unwrap()..];
    let offset: i64 = clock.split("offset = ").nth(1).unwrap().split(';').next().unwrap().parse().unwrap();
    let uuid = clock.split('"').nth(3).unwrap();
    let changed = metadata.replace(&format!("offset = {offset};"), &format!("offset = {};", offset - OFF));
    fs::write(&other, changed.replace(uuid, "11111111-2222-3333-4444-555555555555")).unwrap();
    assert_eq!(viewed(&stored), 800);
    let [first, second] = &view(&["--clocks"], &stored).collect::<Vec<_>>()[..] else { panic!("two clocks") };
    let far = second["correction_ns"].as_i64().unwrap() - first["correction_ns"].as_i64().unwrap();
    assert!((far - OFF).abs() < 1_000_000_000, "{first} {second}");
    let output = |options: &[&str]| Command::new(TRACECTL).arg("view").args(options).arg(&stored).output().unwrap();
    let errors = String::from_utf8(output(&[]).stderr).unwrap();
    assert!(errors.contains("the clock of host0 is ") && errors.contains("behind that of the collector"), "{errors}");
    let table = String::from_utf8(output(&["--clocks"]).stdout).unwrap();
    let lines: Vec<_> = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>()).collect();
    assert_eq!(lines[0], ["HOST", "CORRECTION", "ERROR", "AT", "MOST", "TRACE"]);
    assert!(lines.len() == 3 && lines[1..].iter().all(|line| line[0] == "host0"), "{table}");
    // The events of both hosts happened at the same time, and are shown so.
    let first_times = traces(&stored)
        .into_iter()
        .map(|trace| view(&["--head", "1"], &trace).next().unwrap()["time_ns"].as_i64().unwrap());
    let first_times: Vec<_> = first_times.collect();
    assert!(first_times[0].abs_diff(first_times[1]) < OFF.unsigned_abs() / 2, "{first_times:?}");
}

#[test]
fn an_interrupt_ends_it_on_all_hosts() {
    if is_traced() {
        return;
    }
    let Some(hosts) = Hosts::new(2) else { return };
    let place = TempDir::new_in("/dev/shm").unwrap();
    let test = "on_hosts::an_interrupt_ends_it_on_all_hosts";
    let mut record = record(&hosts, place.path(), test, u64::MAX, &[]);
    let stored = place.path().join("stored");
    let has_packets = |trace: &PathBuf| fs::read_dir(trace.join("index")).is_ok_and(|files| files.count() > 0);
    wait_for(|| (traces(&stored).iter().filter(|trace| has_packets(trace)).count() == 2).then_some(()));
    record.interrupt();
    let status = wait_for(|| record.0.try_wait().unwrap());
    assert_eq!(status.code(), Some(143), "the programs were ended by SIGTERM: {status}");
    let report = report(place.path());
    let mut recorded = [0, 1].map(|host| report["hosts"][host]["report"]["recorded"].as_u64().unwrap());
    assert!(recorded.iter().all(|count| *count > 0), "{report}");
    let mut viewed: Vec<_> = traces(&stored).iter().map(|trace| viewed(trace)).collect();
    viewed.sort_unstable();
    recorded.sort_unstable();
    assert_eq!(viewed, recorded, "what the hosts report is what is here");
}

#[test]
fn the_largest_size_ends_it_on_all_hosts_and_is_noted() {
    if is_traced() {
        return;
    }
    let Some(hosts) = Hosts::new(2) else { return };
    let place = TempDir::new_in("/dev/shm").unwrap();
    let test = "on_hosts::the_largest_size_ends_it_on_all_hosts_and_is_noted";
    let mut record = record(&hosts, place.path(), test, u64::MAX, &["--max-size", "64K"]);
    let status = wait_for(|| record.0.try_wait().unwrap());
    assert_eq!(status.code(), Some(143), "the programs were ended by SIGTERM: {status}");
    let notes = fs::read_to_string(place.path().join("record.errors")).unwrap();
    assert!(notes.contains("note: collecting at ") && notes.contains("; viewers: tracectl view net://"), "{notes}");
    assert!(notes.contains("note: stopped at `--max-size` (64.00 KiB)\n"), "{notes}");
    let report = report(place.path());
    assert!([0, 1].iter().all(|host| report["hosts"][*host]["report"]["recorded"].as_u64() > Some(0)), "{report}");
}
