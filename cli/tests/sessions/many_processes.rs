//! Many processes under one `record`: each is recorded, or named.
//!
//! `TRACEPOINT_FLEET` says how many there are; a thousand take a few minutes and some gigabytes.

use super::remote_recording::until;
use super::{Outcome, PAUSE, Place, Traced, is_traced, program};
use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

fn processes() -> usize {
    env::var("TRACEPOINT_FLEET").map_or(40, |processes| processes.parse().expect("a number"))
}

/// Starts them all at once, and waits until they are listed.
fn start(place: &Place, test: &str, count: usize) -> Vec<Traced> {
    let mut command = program(test, 0);
    command.env("TRACEPOINT_RUN_DIR", place.path("run")).env(PAUSE, "50").stdin(Stdio::piped()).stdout(Stdio::null());
    let traced: Vec<_> = (0..count).map(|_| Traced(command.spawn().expect("a process"))).collect();
    let began = Instant::now();
    while place.tracectl(&["list", "--json"]).1.matches("\"pid\"").count() < count {
        assert!(began.elapsed() < Duration::from_secs(300), "not all have started");
        sleep(Duration::from_millis(100));
    }
    traced
}

/// Records for a while to this output, with these limits on open files: exit code, report, and messages.
fn record(place: &Place, output: [&str; 2], soft: u64, hard: u64) -> (Option<i32>, serde_json::Value, String) {
    let arguments = ["record", "-e", "shop:paid", "--duration", "5s", "--json", "--timeout", "60s"];
    let record = place.command(&[&arguments[..], &output].concat());
    let mut limited = Command::new("sh");
    limited.args(["-c", &format!("ulimit -Sn {soft} && ulimit -Hn {hard} && exec \"$0\" \"$@\"")]);
    limited.arg(record.get_program()).args(record.get_args()).current_dir(place.0.path());
    limited.envs(record.get_envs().filter_map(|(key, value)| Some((key, value?))));
    let output = limited.output().expect("tracectl");
    let report = serde_json::from_slice(&output.stdout).unwrap_or_default();
    (output.status.code(), report, String::from_utf8_lossy(&output.stderr).into_owned())
}

/// The processes that were recorded.
fn recorded(report: &serde_json::Value) -> BTreeSet<u64> {
    let all = report["processes"].as_array().into_iter().flatten();
    let with_events = all.filter(|process| process["counters"]["recorded"].as_u64() > Some(0));
    let with_traces =
        with_events.filter(|process| process["outputs"].as_array().is_some_and(|paths| !paths.is_empty()));
    with_traces.filter_map(|process| process["process"].as_str()?.split('-').next()?.parse().ok()).collect()
}

#[test]
fn all_are_recorded_at_a_low_soft_limit() {
    if is_traced() {
        return;
    }
    let place = Place::new();
    let count = processes();
    let _traced = start(&place, "many_processes::all_are_recorded_at_a_low_soft_limit", count);
    let (code, report, err) = record(&place, ["-o", "out"], (count as u64).clamp(64, 1024), 20_000);
    assert_eq!((code, recorded(&report).len()), (Some(0), count), "{err}");
}

/// A recorder holds no file for a process between two rounds, where it has not enough of them.
#[test]
fn all_are_recorded_at_a_hard_limit_of_one_file_for_each() {
    if is_traced() {
        return;
    }
    let place = Place::new();
    let count = processes().max(110);
    let _traced = start(&place, "many_processes::all_are_recorded_at_a_hard_limit_of_one_file_for_each", count);
    let limit = (count as u64 + 24).max(134);
    let (code, report, err) = record(&place, ["-o", "out"], limit, limit);
    assert_eq!((code, recorded(&report).len()), (Some(0), count), "{err}");
    place.verifies("out");
}

/// A dt file stays open.
#[test]
fn those_for_which_there_are_no_files_are_named() {
    if is_traced() {
        return;
    }
    let place = Place::new();
    let count = processes().min(100);
    let traced = start(&place, "many_processes::those_for_which_there_are_no_files_are_named", count);
    let (code, report, err) = record(&place, ["--dt", "out.dt"], 96, 96);
    let recorded = recorded(&report);
    assert!(!recorded.is_empty() && recorded.len() < count, "{} of {count}: {err}", recorded.len());
    assert_ne!(code, Some(0), "{err}");
    for process in &traced {
        let pid = process.0.id();
        let is_named = report["failures"].to_string().contains(&format!("process {pid}"));
        assert!(is_named != recorded.contains(&pid.into()), "process {pid}: {err}");
    }
    for output in report["outputs"].as_array().into_iter().flatten().filter_map(|output| output.as_str()) {
        let (code, out, err) = place.tracectl(&["verify", output]);
        assert_eq!(code, Some(0), "{output}: {out}{err}");
    }
}

/// The rings of all processes are left when their recorder is killed, however many there are.
#[test]
fn a_killed_recorder_leaves_the_rings_of_all() -> Outcome {
    if is_traced() {
        return Ok(());
    }
    let place = Place::new();
    let count = 70;
    let _traced = start(&place, "many_processes::a_killed_recorder_leaves_the_rings_of_all", count);
    let mut recorder = place.command(&["record", "-e", "shop:paid", "-o", "out"]).stderr(Stdio::null()).spawn()?;
    until(|| fs::read_dir(place.path("out")).is_ok_and(|traces| traces.count() == count));
    recorder.kill()?;
    recorder.wait()?;
    until(|| place.on().is_empty());
    let status: serde_json::Value = serde_json::from_str(&place.well(&["status", "--json"]))?;
    assert_eq!(status["leftovers"][0]["processes"], count, "{status}");
    Ok(())
}
