//! A process that may not open another file: its agent waits until it may, and does not spin meanwhile.

use crate::common::{Outcome, again, assert_balances, part, until_ready};
use crate::traced::{PATIENCE, Place, spec, tick, traces};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::fs::{self, File};
use std::path::Path;
use std::thread::{sleep, spawn};
use std::time::{Duration, Instant};
use tracepoint_controller::Controller;
use tracepoint_run_dir::{AckState, RunDir};
use tracepoint_session::Agent;
use tracepoint_session_io::owner::end_with_this_process;
use tracepoint_session_spec::{SinkSpec, State};

/// The process under test: fires events, and opens all file descriptors that it may, or closes them, on request.
fn run_out_of_files() -> Outcome {
    let _agent = Agent::start()?;
    setrlimit(Resource::Nofile, Rlimit { current: Some(64), ..getrlimit(Resource::Nofile) })?;
    spawn(|| {
        for n in 0.. {
            tracepoint::trace!(tick(n, 0));
            sleep(Duration::from_micros(200));
        }
    });
    println!("ready");
    let mut files = Vec::new();
    for line in std::io::stdin().lines() {
        if line? == "open" {
            files.extend(std::iter::from_fn(|| File::open("/dev/null").ok()));
        } else {
            files.clear();
        }
        println!("done");
    }
    Ok(())
}

/// Stopping needs descriptors in the process, which the agent has reserved.
#[test]
fn a_session_is_stopped_and_destroyed_without_files() -> Outcome {
    if part() == "run out" {
        return run_out_of_files();
    }
    let place = Place::new();
    let test = "no_files::a_session_is_stopped_and_destroyed_without_files";
    let mut child = until_ready(again(test, "run out").env("TRACEPOINT_RUN_DIR", place.run_dir()));
    let session = place.record("s", &["traced:tick"]);
    place.until_recorded(&session, 5);
    child.say("open")?;
    assert!(child.says("done"));
    for state in [State::Stopped, State::Active] {
        let generation = session.change("change", |spec| {
            spec.state = state;
            Ok(())
        })?;
        let waited = session.wait(generation, PATIENCE)?;
        assert!(waited.silent.is_empty(), "{waited:?}");
        if state == State::Stopped {
            assert_eq!(waited.acks[0].state, AckState::Ended, "{waited:?}");
            assert_eq!(place.on(), [""; 0]);
            assert_balances(&traces(&place.out("s"))[0]);
        }
    }
    assert!(session.destroy(PATIENCE, false)?.silent.is_empty());
    assert_eq!(place.on(), [""; 0]);
    assert!(child.end());
    Ok(())
}

/// A process that creates a session which ends with it.
fn own_a_session(dir: &Path) -> Outcome {
    let controller = Controller::at(RunDir::at(&dir.join("run"))?)?;
    let mut spec = spec(&["traced:tick"], &[SinkSpec::ctf(dir.join("out/s")).into()]);
    end_with_this_process(&mut spec);
    let session = controller.create("s", &spec)?;
    session.wait(1, PATIENCE)?;
    crate::common::ready();
    Ok(())
}

/// Returns the processor time of the agent's thread.
fn agents_time(pid: u32) -> Result<Duration, Box<dyn std::error::Error>> {
    for thread in fs::read_dir(format!("/proc/{pid}/task"))? {
        let thread = thread?.path();
        // The kernel keeps 15 bytes.
        if fs::read_to_string(thread.join("comm"))?.trim() == "tracepoint-agen" {
            let text = fs::read_to_string(thread.join("schedstat"))?;
            return Ok(Duration::from_nanos(text.split_whitespace().next().ok_or("no time")?.parse()?));
        }
    }
    Err("there is no agent".into())
}

#[test]
fn an_agent_without_file_descriptors_retries() -> Outcome {
    let test = "no_files::an_agent_without_file_descriptors_retries";
    match part().split_once(' ').unwrap_or_default() {
        ("run", _) => return run_out_of_files(),
        ("own", dir) => return own_a_session(Path::new(dir)),
        _ => {}
    }
    let place = Place::new();
    let mut child = until_ready(again(test, "run out").env("TRACEPOINT_RUN_DIR", place.run_dir()));
    let mut owner = until_ready(&mut again(test, &format!("own {}", place.temp.path().display())));
    let session = place.controller.session("s")?;
    place.until_recorded(&session, 5);

    child.say("open")?;
    assert!(child.says("done"));
    owner.kill();
    let before = agents_time(child.id())?;
    sleep(Duration::from_secs(2));
    let taken = agents_time(child.id())?.saturating_sub(before);
    assert!(taken < Duration::from_millis(500), "{taken:?} of 2 s");

    // Once it has file descriptors again, it applies the session without a wake-up.
    child.say("close")?;
    assert!(child.says("done"));
    let deadline = Instant::now() + PATIENCE;
    while session.acks()?.iter().any(|ack| ack.events > 0) {
        assert!(Instant::now() < deadline, "{:?}", session.acks());
        sleep(Duration::from_millis(10));
    }
    assert_eq!(place.on(), [""; 0]);
    assert_balances(&traces(&place.out("s"))[0]);
    assert!(child.end());
    Ok(())
}
