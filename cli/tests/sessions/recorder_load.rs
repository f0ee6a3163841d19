//! `tracectl record` under load, and idle: a slow disk, a burst after an idle period, and the wake-ups of an idle recorder.

use super::remote_recording::verified;
use super::{Outcome, PAUSE, Place, is_traced, kill, program, until};
use std::env;
use std::fs;
use std::process::{Child, Command, Stdio, exit};
use std::thread::sleep;
use std::time::{Duration, Instant};
use tracepoint_session::Agent;

/// Set in a process that a test starts: events per burst, milliseconds of pause after each burst, and the number of bursts.
const BURSTS: &str = "TEST_BURSTS";

/// In a traced process, fires bursts as soon as its events are on, and ends.
fn fire_bursts() {
    let Ok(bursts) = env::var(BURSTS) else { return };
    let numbers: Vec<u64> = bursts.split(' ').map(|number| number.parse().expect("a number")).collect();
    let [events, pause, bursts] = numbers[..] else { panic!("{bursts}") };
    let pause = Duration::from_millis(pause);
    let agent = Agent::start().expect("an agent");
    println!("ready");
    let paid = tracepoint::find("shop:paid").expect("it is declared above");
    while !paid.is_on() {
        sleep(Duration::from_millis(1));
    }
    // Its ring is drained, and the recorder becomes idle.
    tracepoint::trace!(super::paid(0));
    sleep(Duration::from_secs(2));
    for burst in 0..bursts {
        (0..events).for_each(|n| tracepoint::trace!(super::paid(burst * events + n)));
        sleep(pause);
    }
    drop(agent);
    // Skips the test harness, which would write to a pipe without a reader.
    exit(0);
}

/// Records a process that fires bursts with `command`, which runs `tracectl record` with the arguments after it; returns the report.
fn record_bursts(
    place: &Place,
    test: &str,
    bursts: &str,
    record: impl FnOnce(Command) -> Command,
) -> Result<serde_json::Value, Box<dyn std::error::Error>> {
    let mut traced = program(test, 0);
    traced.env(BURSTS, bursts);
    let mut traced = place.start_as(traced);
    let pid = traced.0.id().to_string();
    let tracectl = place.command(&["record", "-e", "shop:paid", "-p", &pid, "-o", "out", "--json"]);
    let recorder = record(tracectl).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    assert!(traced.0.wait()?.success());
    let output = recorder.wait_with_output()?;
    assert!(output.status.success(), "{output:?}");
    verified(place, "out");
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// Asserts that none of the events is lost, except the first, which may fire while its site is being switched on.
fn assert_kept(report: &serde_json::Value, events: u64) {
    let counters = &report["counters"];
    let recorded = counters["recorded"].as_u64().unwrap_or_default();
    assert!((events..=events + 1).contains(&recorded) && counters["lost"] == serde_json::json!({}), "{counters}");
}

/// Nearly 300,000 events a second: more than a ring holds in 300 ms.
const STEADY: &str = "300 1 5000";

/// The disk is repeatedly late by 300 ms; rings and overflow memory hold the events of that time.
#[test]
fn late_writes_cost_no_event() -> Outcome {
    fire_bursts();
    let place = Place::new();
    let log = place.path("strace");
    let late = |tracectl: Command| {
        let mut strace = Command::new("strace");
        // The stream file of a trace is appended to with `write`; the first calls write metadata.
        strace.args([
            "-f",
            "--seccomp-bpf",
            "-e",
            "trace=write",
            "-e",
            "inject=write:delay_enter=300ms:when=12+40",
            "-o",
        ]);
        strace.arg(&log).arg(tracectl.get_program()).args(tracectl.get_args());
        strace.envs(tracectl.get_envs().filter_map(|(key, value)| Some((key, value?))));
        strace.current_dir(tracectl.get_current_dir().expect("a directory"));
        strace
    };
    let report = record_bursts(&place, "recorder_load::late_writes_cost_no_event", STEADY, late)?;
    let delayed = fs::read_to_string(log)?.matches("(DELAYED)").count();
    assert!(delayed >= 3, "{delayed} writes were late");
    assert_kept(&report, 1_500_000);
    Ok(())
}

/// More events at once than rings can hold until the next regular round of the recorder.
#[test]
fn a_burst_after_a_rest_is_kept() -> Outcome {
    fire_bursts();
    let place = Place::new();
    let test = "recorder_load::a_burst_after_a_rest_is_kept";
    let report = record_bursts(&place, test, "80000 1500 3", |tracectl| tracectl)?;
    assert_kept(&report, 240_000);
    Ok(())
}

/// How often the threads of a process have slept so far.
fn sleeps(process: &Child) -> u64 {
    let threads = fs::read_dir(format!("/proc/{}/task", process.id())).into_iter().flatten().flatten();
    let statuses = threads.filter_map(|thread| fs::read_to_string(thread.path().join("status")).ok());
    let count = |status: String| {
        status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:")?.trim().parse::<u64>().ok())
    };
    statuses.filter_map(count).sum()
}

/// Processes that fire nothing cost the recorder at most four wake-ups a second, regardless of their number, and each of them as many.
#[test]
fn an_idle_recorder_hardly_wakes_up() -> Outcome {
    const SECONDS: u64 = 6;
    if is_traced() {
        return Ok(());
    }
    let place = Place::new();
    let idle = |_| {
        let mut command = program("recorder_load::an_idle_recorder_hardly_wakes_up", 0);
        command.env(PAUSE, "3600000");
        place.start_as(command)
    };
    let traced: Vec<_> = (0..10).map(idle).collect();
    let mut recorder =
        place.command(&["record", "-e", "shop:*", "-o", "out"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    until(|| fs::read_dir(place.path("out")).is_ok_and(|traces| traces.count() == traced.len()));
    // Until its intervals have reached their maximum.
    sleep(Duration::from_secs(3));
    let all = || [&recorder, &traced[0].0].map(sleeps);
    let (before, began) = (all(), Instant::now());
    sleep(Duration::from_secs(SECONDS));
    let (after, time) = (all(), began.elapsed());
    kill(&recorder, "INT")?;
    recorder.wait()?;
    for (process, (after, before)) in ["recorder", "recorded process"].iter().zip(after.into_iter().zip(before)) {
        let woken = after - before;
        assert!(u128::from(woken) * 1000 <= 4 * time.as_millis(), "the {process}: {woken} wake-ups in {time:?}");
    }
    Ok(())
}

/// A few events per second use one ring, regardless of how long the recorder is stopped, and none is lost.
#[test]
fn a_stopped_recorder_costs_a_quiet_process_no_memory() -> Outcome {
    if is_traced() {
        return Ok(());
    }
    let place = Place::new();
    let mut command = program("recorder_load::a_stopped_recorder_costs_a_quiet_process_no_memory", 0);
    command.env(PAUSE, "50");
    let _traced = place.start_as(command);
    let recorder = place.command(&["record", "-e", "shop:*", "-o", "out", "--json"]).stdout(Stdio::piped()).spawn()?;
    until(|| fs::read_dir(place.path("out")).is_ok_and(|traces| traces.count() == 1));
    kill(&recorder, "STOP")?;
    let session = place.path("run").join(format!("sessions/record-{}/rings", recorder.id()));
    let dir = fs::read_dir(session)?.next().ok_or("no rings")??.path();
    let rings = || fs::read_dir(&dir).map_or(0, Iterator::count);
    sleep(Duration::from_secs(2));
    let before = rings();
    // At two packets a second, the number of packets in two rings.
    sleep(Duration::from_secs(10));
    assert_eq!(rings(), before);
    kill(&recorder, "CONT")?;
    kill(&recorder, "INT")?;
    let report: serde_json::Value = serde_json::from_slice(&recorder.wait_with_output()?.stdout)?;
    assert_kept(&report, report["processes"][0]["counters"]["fired"].as_u64().ok_or("no count")?);
    Ok(())
}
