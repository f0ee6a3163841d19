//! Streams in the output of `status`, and after their recorder was killed.

use crate::running::{Collect, Running, TRACECTL};
use crate::{TRACED, is_traced, wait_for};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::collections::BTreeSet;
use std::env;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Output};
use tempfile::TempDir;

pub(crate) fn tracectl(place: &Path, arguments: &[&str]) -> Output {
    Command::new(TRACECTL).args(arguments).env("TRACEPOINT_RUN_DIR", place.join("run")).output().unwrap()
}

/// The status of the only session, and the stream of its only process, once the condition holds.
pub(crate) fn stream(place: &Path, is_so: impl Fn(&Value) -> bool) -> (Value, Value) {
    wait_for(|| {
        let status: Value = serde_json::from_slice(&tracectl(place, &["status", "--json"]).stdout).ok()?;
        let session = status["sessions"][0].clone();
        let stream = session["processes"][0]["streams"][0].clone();
        is_so(&stream).then_some((session, stream))
    })
}

/// Number of its events acknowledged by the peer.
fn acknowledged(stream: &Value) -> u64 {
    let streams = stream["acknowledged"].as_array().into_iter().flatten();
    streams.map(|stream| stream[2].as_u64().unwrap()).sum()
}

/// Thread and number of each event below a directory.
pub(crate) fn events(place: &Path, name: &str) -> BTreeSet<[u64; 2]> {
    let view = tracectl(place, &["view", "--json", place.join(name).to_str().unwrap()]);
    let text = String::from_utf8(view.stdout).unwrap();
    let events = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let events = events.filter(|item| item["type"] == "event");
    events.map(|event| ["thread", "n"].map(|field| event["fields"][field].as_u64().unwrap())).collect()
}

#[test]
fn status_tells_the_rate_and_the_lag_of_a_named_session() {
    if is_traced() {
        return;
    }
    let place = TempDir::new_in("/dev/shm").unwrap();
    let place = place.path();
    let collect = Collect::start(place);
    let to = collect.to();
    let created = tracectl(place, &["create", "shop", "-e", "network:*", "--stream", &to, "--start", "--wait"]);
    assert!(created.status.success(), "{}", String::from_utf8_lossy(&created.stderr));
    let mut program = Command::new(env::current_exe().unwrap());
    program.args(["streams::status_tells_the_rate_and_the_lag_of_a_named_session", "--exact"]);
    program.env(TRACED, "1000000 100").env("TRACEPOINT_RUN_DIR", place.join("run"));
    let _program = Running::start(&mut program, &place.join("program"));
    let (_, found) = stream(place, |stream| stream["bytes_per_second"].as_u64() > Some(0));
    assert!(found["lag_ms"].is_u64() && found["packets"].as_u64() > Some(0), "{found}");
    assert!(found["peer"].is_string(), "{found}");
    let text = String::from_utf8(tracectl(place, &["status"]).stdout).unwrap();
    assert!(text.contains("streams to 127.0.0.1") && text.contains("(connected to "), "{text}");
    assert!(text.contains("/s; ") && text.contains(" behind"), "{text}");
}

#[test]
fn what_a_killed_recorder_had_sent_is_known_and_the_rest_is_counted() {
    if is_traced() {
        return;
    }
    let place = TempDir::new_in("/dev/shm").unwrap();
    let place = place.path();
    let collect = Collect::start(place);
    let to = collect.to();
    let signal = |signal| kill_process(Pid::from_child(&collect.program.0), signal).unwrap();
    let test = "streams::what_a_killed_recorder_had_sent_is_known_and_the_rest_is_counted";
    let mut record = Command::new(TRACECTL);
    record.args(["record", "-e", "network:*", "--ring-size", "64K", "--stream", &to, "--sync-interval", "50ms", "--"]);
    record.arg(env::current_exe().unwrap()).args([test, "--exact"]);
    record.env(TRACED, "1000000 100").env("TRACEPOINT_RUN_DIR", place.join("run"));
    let mut record = Running::start(&mut record, &place.join("record"));
    // More is stored than the rings can hold.
    stream(place, |stream| acknowledged(stream) > 20_000);
    // The collector stalls, and the recorder continues to take packets.
    signal(Signal::STOP);
    let is_behind =
        |stream: &Value| stream["lag_ms"].as_u64() > Some(1500) && stream["waiting"].as_u64() > Some(300_000);
    let (session, last) = stream(place, is_behind);
    record.0.kill().unwrap();
    record.0.wait().unwrap();
    let process = session["processes"][0]["process"].as_str().unwrap();
    let process = process.split('-').next().and_then(|pid| Pid::from_raw(pid.parse().ok()?));
    kill_process(process.unwrap(), Signal::KILL).unwrap();
    signal(Signal::CONT);
    let rings = place.join("run/sessions").join(session["name"].as_str().unwrap());
    let recovered = place.join("recovered");
    let output = tracectl(place, &["recover", "--json", rings.to_str().unwrap(), "-o", recovered.to_str().unwrap()]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let number = |name: &str| report["processes"][0][name].as_u64().unwrap();
    let [kept, missing, known] = ["records", "missing", "acknowledged"].map(number);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert!(errors.contains("; they were on their way to 127.0.0.1"), "{errors}");
    // Events that are acknowledged and still in a ring are among those kept.
    assert!(missing > 0 && known + kept >= acknowledged(&last), "{report} {last}");
    collect.end();
    let stored = events(place, "stored");
    assert!(known <= stored.len() as u64, "{known} events are said to be stored, and {} are", stored.len());
    let both = events(place, "recovered").union(&stored).count() as u64;
    let all = kept + missing + known;
    assert!(both >= all - missing && both <= all, "{both} of {all} are there, {missing} are said to be missing");
}

/// Set in a traced program that closes all its descriptors on request: the directory of its own files.
const CLOSES: &str = "TEST_CLOSES";
/// Number of files that it then opens.
const OWN: usize = 16;

/// Waits for a file `close`, then closes all descriptors above 2 and opens its own files.
#[expect(unsafe_code, reason = "a program closes descriptors that it does not own")]
fn close_all(own: &Path) {
    wait_for(|| own.join("close").exists().then_some(()));
    for number in 3..1024 {
        // SAFETY: takes a plain number; the library expects closed descriptors.
        unsafe { libc::close(number) };
    }
    let files: Vec<_> = (0..OWN).map(|number| File::create_new(own.join(number.to_string())).unwrap()).collect();
    fs::write(own.join("closed"), "").unwrap();
    // They stay open.
    std::mem::forget(files);
}

#[test]
fn a_program_that_closes_all_descriptors_goes_on_streaming() {
    if let Ok(own) = env::var(CLOSES) {
        std::thread::spawn(move || close_all(Path::new(&own)));
    }
    if is_traced() {
        return;
    }
    let place = TempDir::new_in("/dev/shm").unwrap();
    let place = place.path();
    let collect = Collect::start(place);
    let create = ["create", "shop", "-e", "network:*", "--stream", &collect.to(), "--start", "--wait"];
    let created = tracectl(place, &create);
    assert!(created.status.success(), "{}", String::from_utf8_lossy(&created.stderr));
    let own = place.join("own");
    fs::create_dir(&own).unwrap();
    let mut program = Command::new(env::current_exe().unwrap());
    program.args(["streams::a_program_that_closes_all_descriptors_goes_on_streaming", "--exact"]);
    program.env(TRACED, "1000000 100").env("TRACEPOINT_RUN_DIR", place.join("run")).env(CLOSES, &own);
    let _program = Running::start(&mut program, &place.join("program"));
    let (_, before) = stream(place, |stream| acknowledged(stream) > 0);
    fs::write(own.join("close"), "").unwrap();
    wait_for(|| own.join("closed").exists().then_some(()));
    stream(place, |stream| acknowledged(stream) > acknowledged(&before) + 10_000);
    let destroyed = tracectl(place, &["destroy", "shop"]);
    assert!(destroyed.status.success(), "{}", String::from_utf8_lossy(&destroyed.stderr));
    assert!((0..OWN).all(|number| fs::metadata(own.join(number.to_string())).unwrap().len() == 0));
    collect.end();
    let stored = place.join("stored");
    let verified = tracectl(place, &["verify", stored.to_str().unwrap()]);
    assert!(verified.status.success(), "{}", String::from_utf8_lossy(&verified.stderr));
    assert!(events(place, "stored").len() > 10_000);
}

#[test]
fn the_clocks_of_a_live_session_are_shown() {
    if is_traced() {
        return;
    }
    let place = TempDir::new_in("/dev/shm").unwrap();
    let place = place.path();
    let collect = Collect::start(place);
    let to = collect.to();
    let mut record = Command::new(TRACECTL);
    record.args(["record", "-e", "network:*", "--stream", &to, "--sync-interval", "50ms", "--"]);
    record.arg(env::current_exe().unwrap()).args(["streams::the_clocks_of_a_live_session_are_shown", "--exact"]);
    record.env(TRACED, "50000 200").env("TRACEPOINT_RUN_DIR", place.join("run"));
    let mut record = Running::start(&mut record, &place.join("record"));
    let relay = format!("net://{}", collect.address("live"));
    let json = |arguments: &[&str]| serde_json::from_slice::<Value>(&tracectl(place, arguments).stdout).ok();
    let session = wait_for(|| json(&["view", "--json", &relay]));
    let url = session["url"].as_str().unwrap();
    // The first measurement may not have arrived yet.
    let clock = wait_for(|| json(&["view", "--json", "--clocks", url]).filter(|clock| clock["aligned"] == true));
    // Both have the same clock.
    let (correction, bound) = (clock["correction_ns"].as_i64().unwrap(), clock["bound_ns"].as_u64().unwrap());
    assert!(bound < 1_000_000_000 && correction.unsigned_abs() <= bound + 1_000_000, "{clock}");
    let table = String::from_utf8(tracectl(place, &["view", "--clocks", url]).stdout).unwrap();
    assert!(table.contains("ERROR AT MOST") && table.contains(url), "{table}");
    let none = tracectl(place, &["view", "--clocks", &relay]);
    assert!(String::from_utf8_lossy(&none.stderr).contains("name one of those"), "{none:?}");
    assert!(wait_for(|| record.0.try_wait().unwrap()).success());
}
