//! A program that rotates its own trace, while its threads run.

use crate::common::{Outcome, assert_balances, event, memory_place, place, view};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use tracepoint_reader::{Item, Trace, Value, recover};
use tracepoint_session::sinks::{CtfSink, DtSink, TextSink};
use tracepoint_session::{Channel, Session, SessionError};

tracepoint::define_trace! {
    provider = "rotated";
    pub step(thread: u64, n: u64) { thread: u64 = thread, n: u64 = n }
}

#[test]
fn each_event_is_in_exactly_one_chunk() -> Outcome {
    own_process!();
    let (place, rings) = (place(), memory_place());
    let (dir, whole) = (place.path().join("cut"), place.path().join("whole"));
    let session = Session::builder("rotated")
        .events("rotated:*")
        .dir(rings.path().join("rings"))
        .channel(Channel::discard(64 << 10).packets(16))
        .sink(CtfSink::create(&dir)?)
        .sink(DtSink::create(place.path().join("newest.dt"), 4)?)
        .sink(CtfSink::create(&whole)?)
        .start()?;
    let stop = AtomicBool::new(false);
    let mut closed = Vec::new();
    thread::scope(|scope| -> Outcome {
        for number in 0..2 {
            let stop = &stop;
            scope.spawn(move || {
                for n in 0.. {
                    tracepoint::trace!(step(number, n));
                    // With more events, each chunk would be larger than the previous one: it is read while they fire.
                    if n % 64 == 0 {
                        thread::sleep(Duration::from_millis(1));
                    }
                    if stop.load(Ordering::Relaxed) {
                        break;
                    }
                }
            });
        }
        let mut run = || -> Outcome {
            for round in 0..10 {
                tracepoint::trace!(step(9, round));
                let chunks = session.rotate()?;
                assert_eq!(chunks.len(), 2, "each sink that can");
                // The events that this thread fired before are in a closed chunk.
                let found = Trace::open(&chunks[0])?.items().any(|item| match item {
                    Item::Event(event) => {
                        let fields = event.fields.as_ref();
                        let field = |name| fields.and_then(|fields| fields.get(name)).and_then(Value::as_u64);
                        (field("thread"), field("n")) == (Some(9), Some(round))
                    }
                    _ => false,
                });
                assert!(found, "{round}");
                closed.extend(chunks);
            }
            Ok(())
        };
        let ran = run();
        stop.store(true, Ordering::Relaxed);
        ran
    })?;
    let summary = session.stop()?;
    for chunk in &closed {
        assert_balances(chunk);
    }
    for dir in [&dir, &whole] {
        assert_balances(dir);
        assert_eq!(std::fs::read_dir(dir)?.count(), 11);
        // The typed oracle: each event once, by any way of reading.
        let mut seen = BTreeSet::new();
        for item in Trace::open(dir)?.items() {
            if let Item::Event(event) = item {
                let fields = event.fields.as_ref().ok_or("no fields")?;
                let field = |name| fields.get(name).and_then(Value::as_u64);
                assert!(seen.insert((field("thread"), field("n"))), "twice: {fields:?}");
            }
        }
        assert_eq!(seen.len() as u64, event(&summary, "rotated:step").recorded);
        assert_eq!(view(&[dir.as_path()]).lines.len(), seen.len());
    }
    Ok(())
}

#[test]
fn a_session_without_a_rotatable_sink_is_an_error() -> Outcome {
    own_process!();
    let rings = memory_place();
    let session = Session::builder("text")
        .events("rotated:*")
        .dir(rings.path().join("rings"))
        .sink(TextSink::new(Vec::new()))
        .start()?;
    assert!(matches!(session.rotate(), Err(SessionError::CannotRotate { .. })));
    session.stop()?;
    Ok(())
}

/// Recovery of a process whose sink keeps the newest chunks: the events of older ones are counted, and none is missing.
#[test]
fn chunks_that_were_replaced_are_not_missing() -> Outcome {
    own_process!();
    for (round, keep) in [2, 1].into_iter().enumerate() {
        let (place, rings) = (place(), memory_place());
        let (dir, rings) = (place.path().join("kept"), rings.path().join("rings"));
        let session = Session::builder(format!("replaced{round}"))
            .events("rotated:*")
            .dir(&rings)
            .channel(Channel::discard(16 << 10).packets(4))
            .sink(CtfSink::create(&dir)?.keep(keep))
            .start()?;
        for round in 0..10 {
            (round * 100..round * 100 + 100).for_each(|n| tracepoint::trace!(step(1, n)));
            session.rotate()?;
        }
        (1000..1050).for_each(|n| tracepoint::trace!(step(1, n)));
        let out = place.path().join("out/one");
        let process = recover::snapshot(&rings, &out)?.processes.remove(0);
        assert!(process.snapshot && process.removed > 0 && process.records >= 50, "{process:?}");
        assert_eq!(
            (process.missing, process.lost.len(), process.removed + process.records),
            (0, 0, 1050),
            "{process:?}"
        );
        assert_balances(&out);
        // As one of several traces, it is compared with the chunks before it.
        assert_balances(&place.path().join("out"));
        let mut numbers = Vec::new();
        for item in Trace::open(&out)?.items() {
            let Item::Event(event) = item else { return Err(format!("a loss before the events: {item:?}").into()) };
            numbers.extend(event.fields.as_ref().and_then(|fields| fields.get("n")).and_then(Value::as_u64));
        }
        assert_eq!(numbers, (process.removed..1050).collect::<Vec<_>>());
        session.stop()?;
    }
    Ok(())
}
