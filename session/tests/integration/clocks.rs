//! Sessions with other clocks than the best one of the machine. One test: a process has one clock.

use crate::common::{Outcome, assert_balances, place, view};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use tracepoint::clock;
use tracepoint_session::sinks::CtfSink;
use tracepoint_session::{Clock, Session, SessionError};

tracepoint::define_trace! {
    provider = "clocks";
    tick(n: u32) { n: u32 = n }
}

const EVENTS: u32 = 1000;

/// A clock that advances by sevens.
fn sevens() -> u64 {
    static TIME: AtomicU64 = AtomicU64::new(0);
    TIME.fetch_add(7, Ordering::Relaxed) + 7
}

fn start(dir: &Path, clock: Clock) -> Result<Session, Box<dyn std::error::Error>> {
    Ok(Session::builder("clocks").events("clocks:*").clock(clock).sink(CtfSink::create(dir)?).start()?)
}

/// Two threads, one after the other: two streams.
fn fire() {
    for thread in 0..2 {
        let fire = move || (0..EVENTS).for_each(|n| trace_tick(n * 2 + thread));
        std::thread::spawn(fire).join().expect("fires");
    }
}

/// Returns the output of babeltrace2 for the trace: the metadata's clock, and all numbers, in the order of each stream.
fn look(dir: &Path) -> Result<String, Box<dyn std::error::Error>> {
    let viewed = view(&[dir]);
    assert_eq!(viewed.warnings, "");
    let number = |line: &String| line.rsplit("n = ").next().and_then(|rest| rest.trim_end_matches(" }").parse().ok());
    let numbers: Vec<u32> = viewed.lines.iter().filter_map(number).collect();
    assert_eq!(numbers.len(), 2 * EVENTS as usize);
    for thread in 0..2 {
        let of_thread: Vec<u32> = numbers.iter().copied().filter(|n| n % 2 == thread).collect();
        assert!(of_thread.is_sorted(), "the order in a stream is kept");
    }
    assert_balances(dir);
    let metadata = std::fs::read_to_string(dir.join("metadata"))?;
    let clock = metadata.split("\nclock {").nth(1).and_then(|rest| rest.split("};").next()).ok_or("no clock")?;
    Ok(clock.to_owned())
}

#[test]
fn every_clock_makes_a_trace() -> Outcome {
    own_process!();
    let place = place();
    let dir = |name: &str| place.path().join(name);

    // The best clock of the machine uses the time axis that all processes share.
    let session = Session::builder("clocks").events("clocks:*").sink(CtfSink::create(dir("monotonic"))?).start()?;
    assert!(["tsc", "arch_sys_counter", "clock_gettime"].contains(&clock::name()));
    fire();
    // Meanwhile another clock is refused, and the same one is accepted.
    let refused = Session::builder("other")
        .events("clocks:*")
        .clock(Clock::Coarse)
        .sink(CtfSink::create(dir("refused"))?)
        .start();
    let Err(error @ SessionError::Clock(_)) = refused else { panic!("started with two clocks") };
    let expected = format!(
        "the session does not start: the clock cannot be changed while channels are open that use another one ({}); stop the \
         sessions that use it first, or leave `.clock(…)` out to share it",
        clock::name()
    );
    assert_eq!(error.to_string(), expected);
    start(&dir("shared"), Clock::Monotonic)?.stop()?;
    session.stop()?;
    let monotonic = look(&dir("monotonic"))?;
    assert!(monotonic.contains("name = \"monotonic\"") && monotonic.contains("uuid = "), "{monotonic}");

    for (name, choice) in [("system", Clock::System), ("coarse", Clock::Coarse)] {
        let session = start(&dir(name), choice)?;
        fire();
        session.stop()?;
        assert_eq!(look(&dir(name))?, monotonic, "the same axis");
    }

    for (name, choice) in [("none", Clock::None), ("user", Clock::User(sevens))] {
        let session = start(&dir(name), choice)?;
        assert_eq!(clock::name(), name);
        fire();
        session.stop()?;
        let clock = look(&dir(name))?;
        assert!(clock.contains("offset = 0;") && clock.contains("absolute = false;"), "{clock}");
        assert!(!clock.contains("uuid"), "{clock}");
    }
    Ok(())
}
