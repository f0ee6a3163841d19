//! `tracectl record` reads the rings of other processes: whichever process is killed or stopped, no committed event is missing, and none is
//! duplicated.

use super::{BUSY, Outcome, Place, Traced, is_traced, kill, program, seed, until};
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

/// How often `record` is killed, unless the environment sets another number.
const KILLS: u32 = 5;
const KILLS_VARIABLE: &str = "TRACEPOINT_KILLS";

/// A process whose threads fire as fast as they can.
pub(super) fn busy(place: &Place, test: &str, threads: u32) -> Traced {
    let mut command = program(test, 0);
    command.env(BUSY, threads.to_string());
    place.start_as(command)
}

pub(super) fn record(place: &Place, traced: &Traced, out: &str) -> Result<Child, Box<dyn std::error::Error>> {
    let pid = traced.0.id().to_string();
    let arguments = ["record", "-e", "shop:paid", "-p", &pid, "-o", out, "--max-size", "4G", "--json"];
    Ok(place.command(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?)
}

/// The size of the stream files below a directory.
pub(super) fn written(dir: &Path) -> u64 {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let size =
        |path: PathBuf| if path.is_dir() { written(&path) } else { path.metadata().map_or(0, |file| file.len()) };
    entries.map(|entry| entry.path()).filter(|path| !path.ends_with("metadata")).map(size).sum()
}

/// The number of events shown by `tracectl view`. Its losses are from threads that fire faster than the machine can write.
fn viewed(place: &Place, trace: &str) -> u64 {
    let (code, out, err) = place.tracectl(&["view", trace]);
    assert_eq!(code, Some(0), "{err}");
    out.lines().filter(|line| line.contains(" shop:paid ")).count() as u64
}

/// Checks that the account of the trace balances.
pub(super) fn verified(place: &Place, trace: &str) {
    let (code, out, err) = place.tracectl(&["verify", trace]);
    assert_eq!(code, Some(0), "{trace}: {out}{err}");
}

#[test]
fn a_killed_process_loses_no_committed_event() -> Outcome {
    if is_traced() {
        return Ok(());
    }
    let place = Place::new();
    let traced = busy(&place, "remote_recording::a_killed_process_loses_no_committed_event", 2);
    let pid = traced.0.id();
    let record = record(&place, &traced, "out")?;
    until(|| written(&place.path("out")) > 1 << 20);
    drop(traced);
    let output = record.wait_with_output()?;
    assert_eq!(output.status.code(), Some(7), "{output:?}");
    let report: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    assert_eq!(report["recovered"][0]["pid"], pid);
    assert_eq!(report["failures"], serde_json::json!([]));
    let counters = &report["counters"];
    assert_eq!(report["recovered"][0]["records"], counters["recorded"], "what was committed is there: {counters}");
    assert_eq!(counters["lost"].get("sink"), None);
    verified(&place, "out");
    assert_eq!(viewed(&place, "out"), counters["recorded"].as_u64().unwrap_or_default());
    assert_eq!(fs::read_dir(place.path("run/sessions"))?.count(), 0);
    Ok(())
}

/// Kills the recorder at random moments: its output and the rings together have each packet once.
#[test]
fn a_killed_recorder_loses_and_repeats_nothing() -> Outcome {
    if is_traced() {
        return Ok(());
    }
    let kills = env::var(KILLS_VARIABLE).ok().and_then(|kills| kills.parse().ok()).unwrap_or(KILLS);
    let place = Place::new();
    let traced = busy(&place, "remote_recording::a_killed_recorder_loses_and_repeats_nothing", 2);
    let mut random = seed::seed();
    for round in 0..kills {
        let (out, whole) = (format!("out{round}"), format!("whole{round}"));
        let mut record = record(&place, &traced, &out)?;
        until(|| written(&place.path(&out)) > 1 << 16);
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        sleep(Duration::from_micros((random >> 33) % 50_000));
        record.kill()?;
        record.wait()?;
        until(|| place.on().is_empty());
        let left = place.path(&format!("run/sessions/record-{}", record.id()));
        // Each packet once, whether or not a sink has written it.
        let (code, report, said) =
            place.tracectl(&["recover", left.to_str().ok_or("no text")?, "-o", &whole, "--json"]);
        // The kill may interrupt a write: a packet that is partly in the file is still in the ring.
        assert!(code == Some(0) && said.lines().all(|line| line.contains("are a part of a packet")), "{report} {said}");
        let report: serde_json::Value = serde_json::from_str(&report)?;
        let process = &report["processes"][0];
        assert!(process["packets_from_outputs"].as_u64() > Some(0), "{process}");
        assert_eq!(process["lost"].get("sink"), None, "{process}");
        verified(&place, &whole);
        for dir in [left, place.path(&out), place.path(&whole)] {
            fs::remove_dir_all(dir)?;
        }
    }
    Ok(())
}

#[test]
fn a_process_that_is_stopped_is_drained() -> Outcome {
    if is_traced() {
        return Ok(());
    }
    let place = Place::new();
    let traced = busy(&place, "remote_recording::a_process_that_is_stopped_is_drained", 1);
    let record = record(&place, &traced, "out")?;
    until(|| written(&place.path("out")) > 1 << 16);
    kill(&traced.0, "STOP")?;
    // `record` waits for the process, and then reads the rings.
    kill(&record, "INT")?;
    let output = record.wait_with_output()?;
    let report: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    assert_eq!(output.status.code(), Some(1), "{report}");
    assert_eq!(report["not_acknowledged"][0], traced.0.id());
    let counters = &report["counters"];
    let [recorded, full] = [&counters["recorded"], &counters["fired"]].map(|count| count.as_u64().unwrap_or_default());
    assert!(recorded > 0 && recorded <= full, "{report}");
    assert_eq!(viewed(&place, "out"), recorded, "all that was committed");
    let (code, out, _) = place.tracectl(&["verify", "out"]);
    assert!(code != Some(0) && out.contains("complete"), "it runs: {out}");
    // When the process continues, it ends the recording, and then removes its rings, which no recorder needs.
    kill(&traced.0, "CONT")?;
    until(|| {
        // This removes the session's directory once it is empty.
        place.well(&["status"]);
        fs::read_dir(place.path("run/sessions")).is_ok_and(|dir| dir.count() == 0)
    });
    Ok(())
}

#[test]
fn two_recorders_have_rings_of_their_own() -> Outcome {
    if is_traced() {
        return Ok(());
    }
    let place = Place::new();
    let traced = busy(&place, "remote_recording::two_recorders_have_rings_of_their_own", 1);
    let records = [record(&place, &traced, "first")?, record(&place, &traced, "second")?];
    until(|| ["first", "second"].iter().all(|out| written(&place.path(out)) > 1 << 20));
    for record in &records {
        kill(record, "INT")?;
    }
    for (record, out) in records.into_iter().zip(["first", "second"]) {
        let output = record.wait_with_output()?;
        assert!(output.status.success(), "{output:?}");
        let report: serde_json::Value = serde_json::from_slice(&output.stdout)?;
        verified(&place, out);
        let lines = viewed(&place, out);
        assert_eq!(Some(lines), report["counters"]["recorded"].as_u64());
    }
    assert_eq!(fs::read_dir(place.path("run/sessions"))?.count(), 0);
    Ok(())
}

/// A process whose rings are inaccessible, because another process holds the lock for too long, is named, and its rings are kept.
#[test]
fn a_process_that_could_not_be_looked_at_is_named() -> Outcome {
    if is_traced() {
        return Ok(());
    }
    let place = Place::new();
    let test = "remote_recording::a_process_that_could_not_be_looked_at_is_named";
    let first = place.start(test);
    let mut record = place.command(&["record", "-e", "shop:paid", "-o", "out"]);
    let record = record.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    until(|| fs::read_dir(place.path("out")).is_ok_and(|traces| traces.count() == 1));
    let session = fs::read_dir(place.path("run/sessions"))?.next().ok_or("no session")??.path();
    let mut lock = Command::new("flock").arg("--no-fork").arg(session.join("rings")).args(["sleep", "1h"]).spawn()?;
    let is_locked = || Command::new("flock").arg("--nonblock").arg(session.join("rings")).arg("true").status();
    until(|| is_locked().is_ok_and(|status| !status.success()));
    let second = place.start(test);
    until(|| fs::read_dir(session.join("rings")).is_ok_and(|rings| rings.count() == 2));
    kill(&record, "INT")?;
    let output = record.wait_with_output()?;
    lock.kill()?;
    lock.wait()?;
    let err = String::from_utf8_lossy(&output.stderr);
    let named =
        format!("process {}: not recorded: its rings cannot be opened: another process holds the lock", second.0.id());
    assert!(!output.status.success() && err.contains(&named), "{:?}: {err}", output.status);
    assert!(!err.contains(&format!("process {}: ", first.0.id())), "{err}");
    assert_eq!(fs::read_dir(session.join("rings"))?.count(), 1, "its rings are kept");
    Ok(())
}

/// The traces of all processes together stay within `--max-size`.
#[test]
fn the_largest_size_holds_for_all_processes_together() -> Outcome {
    const MAX: u64 = 4 << 20;
    if is_traced() {
        return Ok(());
    }
    let place = Place::new();
    let _traced =
        [(); 3].map(|()| busy(&place, "remote_recording::the_largest_size_holds_for_all_processes_together", 1));
    let (code, out, err) = place.tracectl(&["record", "-e", "shop:paid", "-o", "out", "--json", "--max-size", "4M"]);
    let report: serde_json::Value = serde_json::from_str(&out)?;
    // Reaching the configured size is a regular end, not a failure.
    let is_told = err.contains("stopped at `--max-size` (4.00 MiB)") && report["max_size_reached"] == true;
    assert!(code == Some(0) && is_told && report["failures"] == serde_json::json!([]), "{code:?} {err} {report}");
    let bytes = report["counters"]["bytes"].as_u64().unwrap_or_default();
    // The first and last packets of streams are additional.
    assert!(bytes > MAX / 2 && bytes < MAX + (64 << 10), "{bytes}");
    assert!(report["counters"]["lost"]["sink"].as_u64() > Some(0), "{report}");
    // One number has one name.
    let processes = report["processes"].as_array().ok_or("no processes")?.iter();
    let each: Option<u64> = processes.map(|process| process["counters"]["recorded"].as_u64()).sum();
    assert_eq!(report["counters"]["recorded"], report["recorded"], "{report}");
    assert_eq!(each, report["recorded"].as_u64(), "{report}");
    verified(&place, "out");
    Ok(())
}

/// `record` has the channels that `create` has, with the policies that a recorder can serve.
#[test]
fn channels_have_contexts_and_sizes() {
    if is_traced() {
        return;
    }
    let place = Place::new();
    let _traced = place.start("remote_recording::channels_have_contexts_and_sizes");
    let record = ["record", "-e", "shop:paid", "--duration", "300ms"];
    let channels = ["--add-channel", "big:ring-size=4M,contexts=cpu", "--channel", "big", "-o", "out"];
    place.well(&[&record[..], &channels].concat());
    verified(&place, "out");
    let shown = place.well(&["view", "out"]);
    assert!(shown.contains(" shop:paid ") && shown.lines().all(|line| line.contains("cpu_id=")), "{shown}");
    let (code, _, err) = place.tracectl(&[&record[..], &["--policy", "overwrite", "-o", "other"]].concat());
    assert!(code != Some(0) && err.contains("tracectl create NAME --policy overwrite"), "{err}");
}
