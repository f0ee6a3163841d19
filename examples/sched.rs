//! A bare hook, a probe that is connected while the program runs, and a marker that the probe exports: for programs with their own
//! probes. Most programs declare fields in `define_trace!` and need neither; the README has the shortest such program.
//!
//! `cargo run --example sched`

#![forbid(unsafe_code)]

use std::error::Error;
use std::io;
use tracepoint::{Agent, Session, sinks::CtfSink};
use tracepoint_reader::Trace;
use tracepoint_reader::text::{TextOptions, TextWriter};

/// The program's own data.
struct Task {
    pid: i32,
    state: i64,
}

// 1. Declare: a name and typed arguments. While it is off, a call costs nothing measurable.
tracepoint::define_trace! {
    provider = "sched";

    /// The scheduler leaves `prev` and runs `next`.
    sched_switch(prev: &Task, next: &Task);
}

// 2. Call it wherever the event happens.
fn switch(prev: &Task, next: &Task) {
    tracepoint::trace!(sched_switch(prev, next));
}

// 3. A probe is a function with the same arguments. This one exports some of their values, as basic types,
//    to the subscribers of the marker `kernel_sched_switch`.
fn probe_sched_switch(prev: &Task, next: &Task) {
    tracepoint::trace_mark!(
        kernel_sched_switch,
        "prev_pid %d next_pid %d prev_state %ld",
        prev.pid,
        next.pid,
        prev.state
    );
}

fn main() -> Result<(), Box<dyn Error>> {
    // While this exists, the program can be controlled from outside (`tracectl list`). If it fails, the program runs without it.
    let _agent = Agent::start().inspect_err(|error| eprintln!("{error}")).ok();

    let (idle, shell) = (Task { pid: 0, state: 0 }, Task { pid: 4711, state: 1 });
    switch(&idle, &shell); // off: not recorded

    // 4. Record: the events, and the destination.
    let place = tempfile::tempdir()?;
    let directory = place.path().join("trace");
    let session =
        Session::builder("sched").events("*:kernel_sched_switch").sink(CtfSink::create(&directory)?).start()?;

    // 5. Connect the probe: the tracepoint is on.
    let probe = register_trace_sched_switch(probe_sched_switch)?;
    switch(&idle, &shell);
    switch(&shell, &idle);
    unregister_trace_sched_switch(probe); // the probe is not running any more, and will not again
    switch(&idle, &shell); // off

    // 6. The account of the recording, and the recording itself. Any CTF reader can open it; this is ours.
    for event in session.stop()?.events() {
        eprintln!("{}: fired {}, recorded {}", event.name, event.fired, event.recorded);
    }
    let mut text = TextWriter::new(TextOptions::default());
    for item in Trace::open(&directory)?.items() {
        text.write_item(&mut io::stdout(), &item)?;
    }
    Ok(())
}
