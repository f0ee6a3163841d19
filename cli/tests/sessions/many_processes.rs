//! Many processes under one `record`: each is either recorded or named.
//!
//! `TRACEPOINT_FLEET` sets their number. A thousand need 12 GiB of free memory and, in a debug build on two processors, a minute.

use super::{Outcome, PAUSE, Place, Traced, is_traced, kill, program, until};
use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Time limit for the start of the processes, and for the start of a recording.
const PATIENCE: Duration = Duration::from_secs(240);
/// Maximum memory of a process: its rings, its own memory, and its share of kernel memory.
const MEMORY: u64 = 12 << 20;

fn processes() -> usize {
    env::var("TRACEPOINT_FLEET").map_or(40, |processes| processes.parse().expect("a number"))
}

/// The processes of one test.
struct Fleet {
    processes: Vec<Traced>,
    /// Held by one test at a time: the processes of two tests may exceed the machine's memory.
    _turn: MutexGuard<'static, ()>,
}

/// Starts them all at once, and waits until they are listed. Together they fire at most a thousand times a second.
fn start(place: &Place, test: &str, count: usize) -> Fleet {
    static TURN: Mutex<()> = Mutex::new(());
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let info = fs::read_to_string("/proc/meminfo").expect("it is there");
    let free = info
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:")?.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    let (free, needed) = (free.expect("a number") >> 10, (count as u64 * MEMORY) >> 20);
    assert!(
        free > needed,
        "{count} processes may need {needed} MiB, and {free} are free: set TRACEPOINT_FLEET to fewer"
    );
    let mut command = program(test, 0);
    command.env("TRACEPOINT_RUN_DIR", place.path("run")).env(PAUSE, count.max(50).to_string());
    command.stdin(Stdio::piped()).stdout(Stdio::null());
    let traced: Vec<_> = (0..count).map(|_| Traced(command.spawn().expect("a process"))).collect();
    let began = Instant::now();
    // Without `tracectl list`, which would query every process.
    let listed = || {
        let entries = fs::read_dir(place.path("run/apps")).into_iter().flatten().flatten();
        entries.filter(|entry| entry.path().join("process.json").exists()).count()
    };
    while listed() < count {
        assert!(began.elapsed() < PATIENCE, "{} of {count} have started", listed());
        sleep(Duration::from_millis(100));
    }
    Fleet { processes: traced, _turn: turn }
}

/// Records for a while to this output, with these limits on open files; returns exit code, report, and messages.
fn record(place: &Place, output: [&str; 2], soft: u64, hard: u64) -> (Option<i32>, serde_json::Value, String) {
    let arguments = ["record", "-e", "shop:paid", "--duration", "5s", "--json", "--timeout", "60s"];
    let record = place.command(&[&arguments[..], &output].concat());
    let mut limited = Command::new("sh");
    let patience = PATIENCE.as_secs();
    limited.args([
        "-c",
        &format!("ulimit -Sn {soft} && ulimit -Hn {hard} && exec timeout -k 20 {patience} \"$0\" \"$@\""),
    ]);
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

/// The recorder counts its open files once for many processes, not for each: counting takes longer the more there are.
#[test]
fn open_files_are_not_counted_for_each_process() -> Outcome {
    if is_traced() {
        return Ok(());
    }
    let place = Place::new();
    let _traced = start(&place, "many_processes::open_files_are_not_counted_for_each_process", 40);
    let log = place.path("strace");
    let tracectl = place.command(&["record", "-e", "shop:paid", "--duration", "1s", "-o", "out"]);
    let mut strace = Command::new("strace");
    strace.args(["-f", "--seccomp-bpf", "-e", "trace=open,openat", "-o"]).arg(&log);
    strace.arg(tracectl.get_program()).args(tracectl.get_args()).current_dir(place.0.path());
    strace.envs(tracectl.get_envs().filter_map(|(key, value)| Some((key, value?))));
    let output = strace.output()?;
    assert!(output.status.success(), "{output:?}");
    let counts = fs::read_to_string(log)?.matches("\"/proc/self/fd\"").count();
    assert!((1..=2).contains(&counts), "{counts} times");
    Ok(())
}

/// A process that does not answer, because it is stopped, does not delay the recording of the others.
#[test]
fn a_process_that_does_not_answer_delays_no_other() -> Outcome {
    if is_traced() {
        return Ok(());
    }
    let place = Place::new();
    let test = "many_processes::a_process_that_does_not_answer_delays_no_other";
    let fleet = start(&place, test, 2);
    let silent = &fleet.processes[0];
    kill(&silent.0, "STOP")?;
    let arguments = ["record", "-e", "shop:paid", "-o", "out", "--timeout", "1h"];
    let mut recorder = place.command(&arguments).stderr(Stdio::null()).spawn()?;
    // If it waited for the process that is stopped, it would do so for an hour.
    until(|| fs::read_dir(place.path("out")).map_or(0, Iterator::count) > 0);
    kill(&silent.0, "CONT")?;
    until(|| fs::read_dir(place.path("out")).is_ok_and(|traces| traces.count() == 2));
    kill(&recorder, "INT")?;
    assert!(recorder.wait()?.success());
    Ok(())
}

/// If the limit on open files is too low, a recorder holds no file for a process between two rounds.
#[test]
fn all_are_recorded_at_a_hard_limit_below_their_number() {
    if is_traced() {
        return;
    }
    let place = Place::new();
    let count = processes().max(70);
    let _traced = start(&place, "many_processes::all_are_recorded_at_a_hard_limit_below_their_number", count);
    let (code, report, err) = record(&place, ["-o", "out"], 64, 64);
    assert_eq!((code, recorded(&report).len(), err.as_str()), (Some(0), count, ""));
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
    let (code, report, err) = record(&place, ["--dt", "out.dt"], 56, 56);
    let recorded = recorded(&report);
    assert!(!recorded.is_empty() && recorded.len() < count, "{} of {count}: {err}", recorded.len());
    assert_ne!(code, Some(0), "{err}");
    for process in &traced.processes {
        let pid = process.0.id();
        let is_named = report["failures"].to_string().contains(&format!("process {pid}"));
        assert!(is_named != recorded.contains(&pid.into()), "process {pid}: {err}");
    }
    assert!(err.contains("the recorder may open 56 files") && err.contains("ulimit -n"), "{err}");
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
