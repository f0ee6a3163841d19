//! State dumps: a recording that starts late gets the existing state.

use crate::common::{Outcome, assert_balances, event, place, view};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;
use tracepoint_run_dir::StateDumpStatus;
use tracepoint_session::sinks::{CtfSink, TextSink};
use tracepoint_session::{Channel, Session, Summary, state_dump};

tracepoint::define_trace! {
    provider = "late";

    /// There is a connection.
    pub connection(id: u64, peer: &str) { id: u64 = id, peer: str = peer }

    /// It is used.
    pub used(id: u64) { id: u64 = id }
}

const PEERS: [&str; 3] = ["anna", "bert", "cleo"];

fn tell_all() {
    for (id, peer) in (0..).zip(PEERS) {
        tracepoint::trace!(connection(id, peer));
    }
}

/// Records every event of this file, and keeps only the account.
fn start(name: &str) -> Session {
    let channel = Channel::discard(64 << 10).spares(2);
    Session::builder(name)
        .events("late:*")
        .in_memory()
        .channel(channel)
        .sink(TextSink::new(Vec::new()))
        .start()
        .expect("starts")
}

fn recorded(summary: &Summary, name: &str) -> u64 {
    summary.events().iter().find(|event| event.name == name).map_or(0, |event| event.recorded)
}

/// Returns how often each dump ran and panicked, once all have: on a busy machine they may be late.
fn when_run(session: &Session) -> Vec<(u64, u64)> {
    loop {
        let all: Vec<_> = session.state_dumps().iter().map(|dump| (dump.ran, dump.panicked)).collect();
        if all.iter().all(|(ran, panicked)| ran + panicked > 0) {
            return all;
        }
        thread::yield_now();
    }
}

fn counts(status: &StateDumpStatus) -> (u64, u64, u64, u64) {
    (status.ran, status.panicked, status.late, status.skipped)
}

#[test]
fn a_dump_is_recorded_by_the_starting_session_only() -> Outcome {
    own_process!();
    let earlier = start("earlier");
    let dump = state_dump("connections", |dump| {
        assert_eq!((dump.name(), dump.session(), dump.is_over()), ("connections", "late", false));
        tell_all();
    });
    let place = place();
    let dir = place.path().join("trace");
    // `state_begin` and `state_end` are recorded regardless of the rules.
    let late = Session::builder("late").events("late:*").in_memory().sink(CtfSink::create(&dir)?).start()?;
    assert_eq!(when_run(&late), [(1, 0)]);
    tracepoint::trace!(used(1));
    let summary = late.stop()?;
    assert_eq!(event(&summary, "late:connection").recorded, 3);
    assert_eq!(event(&summary, "late:connection").fired, 3);
    assert_balances(&dir);
    let viewed = view(&[&dir]);
    assert_eq!(viewed.warnings, "");
    let parts: Vec<_> =
        viewed.lines.iter().filter_map(|line| line.split_once(" late:").or(line.split_once(" tracepoint:"))).collect();
    let names: Vec<_> = parts.iter().filter_map(|(_, rest)| rest.split(':').next()).collect();
    assert_eq!(names, ["state_begin", "connection", "connection", "connection", "state_end", "used"]);
    assert!(viewed.lines[0].contains("dump = \"connections\""), "{}", viewed.lines[0]);
    assert!(viewed.lines[2].contains("peer = \"bert\""), "{}", viewed.lines[2]);
    assert!(viewed.lines[4].contains("panicked = 0"), "{}", viewed.lines[4]);

    let summary = earlier.stop()?;
    assert_eq!((event(&summary, "late:connection").fired, event(&summary, "late:used").recorded), (0, 1));
    assert!(!summary.events().iter().any(|event| event.name.starts_with("tracepoint:")));
    // Unregistered.
    drop(dump);
    let summary = start("late").stop()?;
    assert_eq!(event(&summary, "late:connection").fired, 0);
    Ok(())
}

#[test]
fn a_panicking_dump_is_counted_and_the_others_run() -> Outcome {
    own_process!();
    let _first = state_dump("first", |_| {
        tracepoint::trace!(connection(7, "dora"));
        panic!("as the test wants it");
    });
    let _second = state_dump("second", |_| tell_all());
    let session = start("panics");
    assert_eq!(when_run(&session), [(0, 1), (1, 0)]);
    let status = session.state_dumps();
    assert!(status[0].to_string().starts_with("state dump first: ran 0, panicked 1"), "{}", status[0]);
    assert!(status[0].is_incomplete());
    let summary = session.stop()?;
    assert_eq!(event(&summary, "late:connection").recorded, 4);
    assert_eq!((recorded(&summary, "tracepoint:state_begin"), recorded(&summary, "tracepoint:state_end")), (2, 2));
    Ok(())
}

/// The thread that starts the session holds a lock that the dump needs.
#[test]
fn a_hanging_dump_is_reported_late_and_skipped() -> Outcome {
    own_process!();
    let connections = Arc::new(Mutex::new(()));
    let needed = Arc::clone(&connections);
    let (returned, returns) = channel();
    let returned = Mutex::new(returned);
    let _dump = state_dump("locked", move |dump| {
        let _held = needed.lock();
        tell_all();
        let _ = returned.lock().expect("not poisoned").send(dump.is_over());
    });
    let held = connections.lock();
    let session = start("locked");
    assert_eq!(session.state_dumps().iter().map(counts).collect::<Vec<_>>(), [(0, 0, 1, 0)]);
    let second = start("second");
    assert_eq!(second.state_dumps().iter().map(counts).collect::<Vec<_>>(), [(0, 0, 0, 1)]);
    drop(held);
    // The dump continues, and its session records its events.
    assert!(!returns.recv()?);
    while session.state_dumps()[0].ran == 0 {
        thread::yield_now();
    }
    let summary = session.stop()?;
    assert_eq!(event(&summary, "late:connection").recorded, 3);
    assert_eq!(event(&second.stop()?, "late:connection").fired, 0);
    // Now that it has returned, it runs again.
    let third = start("third");
    while third.state_dumps()[0].ran == 0 && third.state_dumps()[0].late == 0 {
        thread::yield_now();
    }
    assert_eq!(third.state_dumps()[0].skipped, 0);
    third.stop()?;
    Ok(())
}

/// Sessions end while the dump continues, and may never return.
#[test]
fn sessions_end_while_a_dump_runs() -> Outcome {
    own_process!();
    let (runs, over) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
    let (own, ended) = (Arc::clone(&runs), Arc::clone(&over));
    let _dump = state_dump("endless", move |dump| {
        own.fetch_add(1, Ordering::Relaxed);
        while !dump.is_over() {
            tell_all();
        }
        ended.store(true, Ordering::Relaxed);
    });
    let session = start("endless");
    assert_eq!(session.state_dumps()[0].late, 1);
    let summary = session.stop()?;
    let event = event(&summary, "late:connection");
    assert!(event.recorded > 0);
    assert_eq!(event.fired, event.recorded + crate::common::lost(event));
    while !over.load(Ordering::Relaxed) {
        thread::yield_now();
    }
    assert_eq!(runs.load(Ordering::Relaxed), 1);
    Ok(())
}

/// Many sessions start and stop at once, each with its own run of the same dump.
#[test]
fn concurrent_sessions_each_get_the_dump() {
    own_process!();
    let _dump = state_dump("connections", |_| tell_all());
    thread::scope(|scope| {
        for number in 0..4 {
            scope.spawn(move || {
                for _ in 0..10 {
                    let session = start(&format!("s{number}"));
                    let status = session.state_dumps();
                    let summary = session.stop().expect("stops");
                    // On a machine that is busy for half a second it may be late.
                    if counts(&status[0]) == (1, 0, 0, 0) {
                        assert_eq!(recorded(&summary, "late:connection"), 3);
                    }
                    thread::sleep(Duration::from_micros(100 * number));
                }
            });
        }
    });
}
