//! Many processes under one `record`: each is recorded, or named.
//!
//! `TRACEPOINT_PROCESSES` says how many there are; a thousand take a few minutes and some gigabytes.

use super::{PAUSE, Place, Traced, is_traced, program};
use std::collections::BTreeSet;
use std::env;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

fn processes() -> usize {
    env::var("TRACEPOINT_PROCESSES").map_or(40, |processes| processes.parse().expect("a number"))
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

/// Records for a while, with these limits on open files: exit code, report, and messages.
fn record(place: &Place, soft: u64, hard: u64) -> (Option<i32>, serde_json::Value, String) {
    let arguments = ["record", "-e", "shop:paid", "--duration", "5s", "-o", "out", "--json", "--timeout", "60s"];
    let record = place.command(&arguments);
    let mut limited = Command::new("sh");
    limited.args(["-c", &format!("ulimit -Sn {soft} && ulimit -Hn {hard} && exec \"$0\" \"$@\"")]);
    limited.arg(record.get_program()).args(record.get_args()).current_dir(place.0.path());
    limited.envs(record.get_envs().filter_map(|(key, value)| Some((key, value?))));
    let output = limited.output().expect("tracectl");
    let told = serde_json::from_slice(&output.stdout).unwrap_or_default();
    (output.status.code(), told, String::from_utf8_lossy(&output.stderr).into_owned())
}

/// The processes that were recorded.
fn recorded(told: &serde_json::Value) -> BTreeSet<u64> {
    let all = told["processes"].as_array().into_iter().flatten();
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
    let (code, told, err) = record(&place, (count as u64).clamp(64, 1024), 20_000);
    assert_eq!((code, recorded(&told).len()), (Some(0), count), "{err}");
}

#[test]
fn those_for_which_there_are_no_files_are_named() {
    if is_traced() {
        return;
    }
    let place = Place::new();
    let count = processes().min(100);
    let traced = start(&place, "many_processes::those_for_which_there_are_no_files_are_named", count);
    let (code, told, err) = record(&place, 128, 128);
    let recorded = recorded(&told);
    assert!(!recorded.is_empty() && recorded.len() < count, "{} of {count}: {err}", recorded.len());
    assert_ne!(code, Some(0), "{err}");
    for process in &traced {
        let pid = process.0.id();
        let is_named = told["failures"].to_string().contains(&format!("process {pid}"));
        assert!(is_named != recorded.contains(&pid.into()), "process {pid}: {err}");
    }
    for output in told["outputs"].as_array().into_iter().flatten().filter_map(|output| output.as_str()) {
        let (code, out, err) = place.tracectl(&["verify", output]);
        assert_eq!(code, Some(0), "{output}: {out}{err}");
    }
}
