//! A flight recorder that the program itself reads: snapshots during the recording, in files and in memory.

use crate::common::{Outcome, assert_balances, memory_place, names, place, view};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use tracepoint_reader::{Item, Trace, Value, verify};
use tracepoint_session::sinks::{CtfSink, TextSink};
use tracepoint_session::{Channel, Session, SessionBuilder};

tracepoint::define_trace! {
    provider = "recorder";
    pub step(thread: u64, n: u64) { thread: u64 = thread, n: u64 = n }
}

fn flight(name: &str, bytes: usize) -> SessionBuilder {
    Session::builder(name).events("recorder:step").channel(Channel::overwrite(bytes))
}

/// Returns the numbers of the events of each thread in a trace, which are in order.
pub(crate) fn numbers(trace: &Path) -> Result<BTreeMap<u64, Vec<u64>>, Box<dyn std::error::Error>> {
    let mut numbers: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    for item in Trace::open(trace)?.items() {
        match item {
            Item::Event(event) => {
                let field = |name: &str| event.fields.as_ref()?.get(name).and_then(Value::as_u64);
                let (thread, n) = (field("thread").unwrap_or(0), field("n").ok_or("no number")?);
                numbers.entry(thread).or_default().push(n);
            }
            Item::Loss(_) => {}
            other => return Err(format!("{other:?}").into()),
        }
    }
    Ok(numbers)
}

/// Verifies a snapshot of a session that continues; returns its events by thread.
pub(crate) fn checked(trace: &Path) -> Result<BTreeMap<u64, Vec<u64>>, Box<dyn std::error::Error>> {
    assert_balances(trace);
    assert_eq!(verify(trace)?.snapshots(), 1, "it says that it is a snapshot");
    numbers(trace)
}

/// The summary of a flight recorder counts the overwritten events.
#[test]
fn the_summary_says_what_was_overwritten() -> Outcome {
    own_process!();
    let session = flight("counted", 16 << 10).in_memory().start()?;
    (0..10_000).for_each(|n| tracepoint::trace!(step(1, n)));
    let place = place();
    let kept = session.snapshot(place.path().join("kept"))?.events;
    let summary = session.stop()?;
    let counters = summary.counters();
    assert_eq!(
        (counters.recorded, counters.overwritten(), counters.total_lost()),
        (10_000, 10_000 - kept, 10_000 - kept)
    );
    assert_eq!(summary.to_string(), format!("counted: 10000 recorded, of which {} overwritten", 10_000 - kept));
    Ok(())
}

/// The snapshot ends with the last event before it, and the session continues: in files and in memory, without a sink.
#[test]
fn a_snapshot_ends_with_the_last_event() -> Outcome {
    own_process!();
    let (rings, place) = (memory_place(), place());
    for in_memory in [false, true] {
        let builder = flight("last", 16 << 10);
        let builder = if in_memory { builder.in_memory() } else { builder.dir(rings.path()) };
        let session = builder.start()?;
        let mut fired = 0;
        for (index, more) in [0, 1, 3, 5000, 1].into_iter().enumerate() {
            for _ in 0..more {
                tracepoint::trace!(step(1, fired));
                fired += 1;
            }
            let out = place.path().join(format!("{in_memory}-{index}"));
            let summary = session.snapshot(&out)?;
            assert_eq!((summary.path.as_path(), summary.failed.len()), (&*out, 0));
            let kept = checked(&out)?.remove(&1).unwrap_or_default();
            assert_eq!(kept.len() as u64, summary.events);
            assert!(kept.iter().copied().eq(fired - kept.len() as u64..fired), "{in_memory} {index}: {kept:?}");
            let overwritten = summary.lost.get("overwritten").copied().unwrap_or(0);
            assert_eq!(overwritten + summary.events, fired);
            assert_eq!(view(&[&out]).lines.len() as u64, summary.events);
        }
        assert_eq!(names(place.path()).iter().filter(|name| name.starts_with('.')).count(), 0);
        let summary = session.stop()?;
        assert_eq!(summary.events()[0].recorded, fired, "it went on");
    }
    Ok(())
}

/// Each snapshot balances, and contains a contiguous part of the events of each thread, up to its last one or almost.
#[test]
fn snapshots_beside_threads_at_full_rate() -> Outcome {
    const THREADS: u64 = 4;
    own_process!();
    let (rings, place) = (memory_place(), place());
    let snapshots: u64 = std::env::var("TRACEPOINT_SNAPSHOTS").map_or(Ok(6), |snapshots| snapshots.parse())?;
    for in_memory in [true, false] {
        let builder = flight("full", 64 << 10);
        let builder = if in_memory { builder.in_memory() } else { builder.dir(rings.path()) };
        let session = builder.start()?;
        let stop = AtomicBool::new(false);
        thread::scope(|scope| -> Outcome {
            for id in 0..THREADS {
                let stop = &stop;
                scope.spawn(move || {
                    for n in (0..).take_while(|_| !stop.load(Ordering::Relaxed)) {
                        tracepoint::trace!(step(id, n));
                    }
                });
            }
            let both = || -> Result<(), String> {
                for index in 0..snapshots {
                    let out = place.path().join(format!("{in_memory}-{index}-{:?}", thread::current().id()));
                    let summary = session.snapshot(&out).map_err(|error| error.to_string())?;
                    let kept = checked(&out).map_err(|error| format!("{index}: {error} {summary:?}"))?;
                    for (id, numbers) in &kept {
                        let gap = numbers.windows(2).find(|pair| pair[0] + 1 != pair[1]);
                        assert!(gap.is_none(), "thread {id}: {gap:?} of {} events, {summary:?}", numbers.len());
                    }
                    assert_eq!(kept.values().map(|numbers| numbers.len() as u64).sum::<u64>(), summary.events);
                    if index % 4 == 0 {
                        assert_eq!(view(&[&out]).lines.len() as u64, summary.events);
                    }
                    std::fs::remove_dir_all(&out).map_err(|error| error.to_string())?;
                }
                Ok(())
            };
            // Concurrently with itself as well. The threads also end if one of both panics.
            let (mine, theirs) = (scope.spawn(both), scope.spawn(both));
            let (mine, theirs) = (mine.join(), theirs.join());
            stop.store(true, Ordering::Relaxed);
            mine.map_err(|_| "a panic")??;
            Ok(theirs.map_err(|_| "a panic")??)
        })?;
        session.stop()?;
    }
    Ok(())
}

/// A trace of a session with a sink contains the packets that the sink has kept, and the contents of the rings; also across rotations.
#[test]
fn a_snapshot_has_the_packets_of_sinks_and_rings() -> Outcome {
    own_process!();
    let place = place();
    let sink = CtfSink::create(place.path().join("trace"))?;
    let builder = Session::builder("mixed").events("recorder:*").channel(Channel::discard(1 << 20)).in_memory();
    let session = builder.sink(sink).start()?;
    let mut n = 0;
    for index in 0..4 {
        for _ in 0..3000 {
            tracepoint::trace!(step(1, n));
            n += 1;
        }
        if index % 2 == 1 {
            session.rotate()?;
        } else {
            session.flush()?;
        }
        tracepoint::trace!(step(1, n));
        n += 1;
        let out = place.path().join(index.to_string());
        let summary = session.snapshot(&out)?;
        assert_eq!((summary.events, summary.lost.len()), (n, 0), "{summary:?}");
        assert!(checked(&out)?[&1].iter().copied().eq(0..n));
    }
    assert_eq!(names(&place.path().join("trace")).len(), 3, "two closed chunks and an open one");
    session.stop()?;
    Ok(())
}

/// After `flush` a CTF directory contains everything, although no packet was full or old.
#[test]
fn flush_moves_open_packets_to_the_sinks() -> Outcome {
    own_process!();
    let place = place();
    let trace = place.path().join("trace");
    let builder = Session::builder("flush").events("recorder:step").in_memory().sink(CtfSink::create(&trace)?);
    let session = builder.start()?;
    for n in 0..10 {
        tracepoint::trace!(step(0, n));
        session.flush()?;
        assert_eq!(numbers(&trace)?[&0].len() as u64, n + 1);
    }
    session.stop()?;
    assert_balances(&trace);
    Ok(())
}

/// A text sink keeps no trace: events written to it are counted as lost in a snapshot, which balances.
#[test]
fn events_that_went_to_a_text_sink_are_counted() -> Outcome {
    own_process!();
    let place = place();
    let builder = Session::builder("text").events("recorder:step").channel(Channel::discard(64 << 10)).in_memory();
    let session = builder.sink(TextSink::new(std::io::sink())).start()?;
    for n in 0..10_000 {
        tracepoint::trace!(step(0, n));
        if n % 100 == 0 {
            session.flush()?;
        }
    }
    let out = place.path().join("out");
    let summary = session.snapshot(&out)?;
    // The newest events are still in the ring.
    let gone = summary.lost.get("sink").copied().unwrap_or(0);
    assert!(gone > 0 && checked(&out)?[&0].iter().copied().eq(gone..10_000), "{summary:?}");
    session.stop()?;
    Ok(())
}
