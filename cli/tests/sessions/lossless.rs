//! `tracectl record --lossless`: events wait for a recorder in another process, for as long as it lives, and for no longer than their limit.

use super::remote_recording::{verified, written};
use super::{Outcome, Place, Traced, kill, program, until};
use std::env;
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Stdio, exit};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, sleep};
use std::time::Duration;
use tracepoint_session::Agent;

/// Set in a process that a test starts: the number of threads that fire as fast as they can, and the number of events of each.
const FLAT_OUT: &str = "TEST_FLAT_OUT";
/// The file to which that process writes how many events its threads have fired. They begin when there is a file beside it with this extension.
const PROGRESS: &str = "TEST_PROGRESS";
const GO: &str = "go";
const FOREVER: u64 = u64::MAX;
const THREADS: u64 = 4;

/// In a traced process, fires the events on threads that exist before the recording, and exits.
fn fire_flat_out() {
    static FIRED: AtomicU64 = AtomicU64::new(0);
    let Some(events) = env::var(FLAT_OUT).ok().map(|events| events.parse().expect("a number")) else { return };
    let agent = Agent::start().expect("an agent");
    let progress: PathBuf = env::var_os(PROGRESS).expect("a path").into();
    let go = progress.with_extension(GO);
    let fire = move || {
        // Few enough for the ring of each thread, until the first of them are in the trace.
        while !go.exists() {
            tracepoint::trace!(super::paid(0));
            sleep(Duration::from_millis(20));
        }
        for n in 0..events {
            tracepoint::trace!(super::paid(n));
            FIRED.fetch_add(1, Ordering::Relaxed);
        }
    };
    let all: Vec<_> = (0..THREADS).map(|_| thread::spawn(fire.clone())).collect();
    println!("ready");
    while !all.iter().all(thread::JoinHandle::is_finished) {
        fs::write(progress.with_extension("new"), FIRED.load(Ordering::Relaxed).to_string()).expect("written");
        fs::rename(progress.with_extension("new"), &progress).expect("renamed");
        sleep(Duration::from_millis(1));
    }
    drop(agent);
    // Skips the test harness, which would write to a pipe without a reader.
    exit(0);
}

fn flat_out(place: &Place, test: &str, events: u64) -> Traced {
    let mut command = program(test, 0);
    command.env(FLAT_OUT, events.to_string()).env(PROGRESS, place.path("progress"));
    place.start_as(command)
}

/// The number of events that the threads have fired so far.
fn fired(place: &Place) -> u64 {
    let text = fs::read_to_string(place.path("progress"));
    text.map_or(0, |text| text.parse().expect("a number"))
}

/// Returns whether all threads wait: they fire nothing, although their process runs.
fn all_wait(place: &Place) -> bool {
    let before = fired(place);
    // The process replaces the file before it has its next number.
    for _ in 0..5 {
        fs::remove_file(place.path("progress")).expect("it is there");
        until(|| place.path("progress").exists());
    }
    fired(place) == before
}

/// Starts `tracectl record` with small rings and this option. When the first events are in the trace, the threads fire without a pause.
fn record(place: &Place, traced: &Traced, option: &str) -> Result<Child, Box<dyn std::error::Error>> {
    let pid = traced.0.id().to_string();
    let rings = ["--ring-size", "8K", "--max-size", "4G"];
    let arguments = [&["record", "-e", "shop:paid", "-p", &pid, "-o", "out", "--json", option], &rings[..]].concat();
    let recorder = place.command(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    until(|| written(&place.path("out")) > 1 << 10);
    fs::write(place.path("progress").with_extension(GO), "")?;
    Ok(recorder)
}

/// The counters in the report of `tracectl record`, which must end with success.
fn counters(recorder: Child) -> Result<serde_json::Value, Box<dyn std::error::Error>> {
    let output = recorder.wait_with_output()?;
    assert!(output.status.success(), "{output:?}");
    let report: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    Ok(report["counters"].clone())
}

/// A ring has room for some hundred events.
#[test]
fn threads_that_fire_without_a_pause_lose_nothing() -> Outcome {
    const EVENTS: u64 = 50_000;
    fire_flat_out();
    let place = Place::new();
    let mut traced = flat_out(&place, "lossless::threads_that_fire_without_a_pause_lose_nothing", EVENTS);
    let recorder = record(&place, &traced, "--lossless=10s")?;
    assert!(traced.0.wait()?.success());
    let counters = counters(recorder)?;
    assert_eq!(counters["lost"], serde_json::json!({}), "{counters}");
    let kept = counters["recorded"].as_u64().unwrap_or_default();
    assert!(counters["fired"] == kept && kept > THREADS * EVENTS, "{counters}");
    verified(&place, "out");
    Ok(())
}

/// The library of a program may be older than `tracectl`.
#[test]
fn a_program_whose_events_cannot_wait_is_named() -> Outcome {
    fire_flat_out();
    let place = Place::new();
    let traced = flat_out(&place, "lossless::a_program_whose_events_cannot_wait_is_named", FOREVER);
    let process = fs::read_dir(place.path("run/apps"))?.next().ok_or("no process")??.path().join("process.json");
    let description = fs::read_to_string(&process)?;
    let older = description.replace("\"waits_for_recorder\"", "\"some_other_key\"");
    assert_ne!(older, description);
    fs::write(&process, older)?;
    let pid = traced.0.id().to_string();
    let err = place.refused(&["record", "-e", "shop:paid", "-p", &pid, "--lossless"]);
    assert!(err.contains(&pid) && err.contains("was built without events that wait for a recorder"), "{err}");
    Ok(())
}

#[test]
fn a_killed_recorder_lets_the_program_go_on() -> Outcome {
    fire_flat_out();
    let place = Place::new();
    let traced = flat_out(&place, "lossless::a_killed_recorder_lets_the_program_go_on", FOREVER);
    let mut recorder = record(&place, &traced, "--lossless=10s")?;
    until(|| written(&place.path("out")) > 1 << 16);
    kill(&recorder, "STOP")?;
    let stopped = fired(&place);
    // Or, on a machine that stops for so long, have waited.
    until(|| all_wait(&place) || fired(&place) > stopped + 1_000_000);
    let before = fired(&place);
    recorder.kill()?;
    recorder.wait()?;
    until(|| fired(&place) > before + 1_000_000);
    until(|| place.on().is_empty());
    let left = format!("run/sessions/record-{}", recorder.id());
    let (code, _, err) = place.tracectl(&["recover", &left, "-o", "whole"]);
    assert_eq!(code, Some(0), "{err}");
    verified(&place, "whole");
    Ok(())
}

#[test]
fn a_stopped_recorder_delays_the_program_once() -> Outcome {
    fire_flat_out();
    let place = Place::new();
    let traced = flat_out(&place, "lossless::a_stopped_recorder_delays_the_program_once", FOREVER);
    let recorder = record(&place, &traced, "--lossless=2s")?;
    until(|| written(&place.path("out")) > 1 << 16);
    kill(&recorder, "STOP")?;
    let before = fired(&place);
    until(|| fired(&place) > before + 1_000_000);
    kill(&recorder, "CONT")?;
    let kept = written(&place.path("out"));
    // Events wait again.
    until(|| written(&place.path("out")) > kept + (1 << 20));
    kill(&recorder, "INT")?;
    let counters = counters(recorder)?;
    assert!(counters["lost"]["ring_full"].as_u64() > Some(900_000), "{counters}");
    verified(&place, "out");
    Ok(())
}
