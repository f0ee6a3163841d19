//! A process that may not map another page: no thread can be started in it, but its sessions can be stopped.

use crate::common::{Outcome, again, assert_balances, part, until_ready};
use crate::traced::{PATIENCE, Place, spec, tick, traces};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::fs;
use std::thread::{Builder, sleep, spawn};
use std::time::Duration;
use tracepoint_session::{Agent, Channel};
use tracepoint_session_io::ControlError;
use tracepoint_session_spec::{SessionSpec, State};

/// The process under test: fires events. On request it allocates all memory that it may have, or may have more.
fn run_out_of_memory() -> Outcome {
    let _agent = Agent::start()?;
    spawn(|| {
        for n in 0.. {
            tracepoint::trace!(tick(n, 0));
            sleep(Duration::from_micros(200));
        }
    });
    println!("ready");
    let mut taken = Vec::with_capacity(4096);
    for line in std::io::stdin().lines() {
        let line = line?;
        let pages: u64 = fs::read_to_string("/proc/self/statm")?.split(' ').next().ok_or("no size")?.parse()?;
        let more = if line == "give" { 32 << 20 } else { 0 };
        setrlimit(Resource::As, Rlimit { current: Some(pages * 4096 + more), ..getrlimit(Resource::As) })?;
        if line == "give" {
            println!("done");
            continue;
        }
        // The free memory of the allocator, in large pieces.
        for size in [1 << 20, 256 << 10, 64 << 10] {
            taken.extend(std::iter::from_fn(|| {
                let mut piece: Vec<u8> = Vec::new();
                piece.try_reserve_exact(size).ok().map(|()| piece)
            }));
        }
        assert!(Builder::new().spawn(|| ()).is_err(), "there is memory for a thread");
        println!("done");
    }
    Ok(())
}

fn change_to(state: State) -> impl FnOnce(&mut SessionSpec) -> Result<(), ControlError> {
    move |spec| {
        spec.state = state;
        Ok(())
    }
}

/// Two sessions: one that writes a trace, and one that keeps its events.
#[test]
fn sessions_are_stopped_and_destroyed_without_memory() -> Outcome {
    if part() == "run out" {
        return run_out_of_memory();
    }
    let place = Place::new();
    let test = "no_memory::sessions_are_stopped_and_destroyed_without_memory";
    let mut child = until_ready(again(test, "run out").env("TRACEPOINT_RUN_DIR", place.run_dir()));
    let written = place.record("written", &["traced:tick"]);
    let mut kept = spec(&["traced:tick"], &[]);
    kept.channel = (&Channel::overwrite(64 << 10).spares(1)).into();
    let kept = place.controller.create("kept", &kept)?;
    for session in [&written, &kept] {
        place.until_recorded(session, 5);
    }
    child.say("take")?;
    assert!(child.says("done"));
    for session in [&written, &kept] {
        let generation = session.change("stop", change_to(State::Stopped))?;
        let waited = session.wait(generation, PATIENCE)?;
        assert!(waited.silent.is_empty(), "{waited:?}");
        assert_eq!((waited.acks[0].events, &waited.acks[0].error), (0, &None), "{waited:?}");
    }
    assert_eq!(place.on(), [""; 0]);
    assert_balances(&traces(&place.out("written"))[0]);

    // With memory for its threads and rings a session starts again.
    child.say("give")?;
    assert!(child.says("done"));
    let generation = written.change("start", change_to(State::Active))?;
    assert!(written.wait(generation, PATIENCE)?.silent.is_empty());
    place.until_recorded(&written, 5);
    child.say("take")?;
    assert!(child.says("done"));
    for session in [written, kept] {
        let removed = session.destroy(PATIENCE, false)?;
        assert!(removed.silent.is_empty() && removed.dead.is_empty(), "{removed:?}");
    }
    assert_eq!(place.on(), [""; 0]);
    assert!(child.end());
    Ok(())
}
