//! A load on a session: threads that fire events, and the outcome of these events.

use std::error::Error;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};
use tracepoint_session::sinks::{CtfSink, TextSink};
use tracepoint_session::{Channel, Session};

pub(crate) type Outcome<T> = Result<T, Box<dyn Error>>;

/// Below this rate a thread sleeps between its events, like a program with little to trace.
const SLEEPS_BELOW: u64 = 2_000_000;
const TICK: Duration = Duration::from_millis(1);

/// The output of events.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Output {
    Ctf,
    Text,
}

/// The recorded events.
#[derive(Debug)]
pub(crate) struct Load {
    pub(crate) output: Output,
    pub(crate) ring_mib: usize,
    pub(crate) threads: usize,
    /// Events per second of each thread; `None` for the maximum.
    pub(crate) rate: Option<u64>,
    /// Events of each thread.
    pub(crate) events: u64,
    /// Idle time before the load.
    pub(crate) quiet: Duration,
}

/// The outcome of a load.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) kept: u64,
    pub(crate) lost: u64,
    pub(crate) wall: Duration,
    /// Processor time of the process, minus the time of the same load without a session.
    pub(crate) processor: Duration,
    pub(crate) rounds: u64,
    pub(crate) woken: u64,
}

/// Runs a load, recorded into a trace or a file of lines below `directory`.
pub(crate) fn run(load: &Load, directory: &Path) -> Outcome<Seen> {
    let place = tempfile::tempdir_in(directory)?;
    let (_, idle) = fire(load);
    let session =
        Session::builder("drained").events("bench:small").channel(Channel::discard(load.ring_mib << 20)).in_memory();
    let path = place.path().join("trace");
    let session = match load.output {
        Output::Ctf => session.sink(CtfSink::create(path)?).start()?,
        Output::Text => session.sink(TextSink::create(path)?).start()?,
    };
    // The first event of a thread, which acquires its ring.
    thread::sleep(load.quiet);
    let before = session.status();
    let (wall, busy) = fire(load);
    let after = session.status();
    let summary = session.stop()?;
    let event = summary.events().iter().find(|event| event.fired > 0).ok_or("no event fired")?;
    Ok(Seen {
        kept: event.recorded,
        lost: event.fired - event.recorded,
        wall,
        processor: busy.saturating_sub(idle),
        rounds: after.drain.rounds - before.drain.rounds,
        woken: after.drain.woken - before.drain.woken,
    })
}

/// Fires the events; returns the duration, and the processor time of the process.
fn fire(load: &Load) -> (Duration, Duration) {
    let (begun, before) = (Instant::now(), processor());
    thread::scope(|scope| {
        for _ in 0..load.threads {
            scope.spawn(|| match load.rate {
                None => burst(0, load.events),
                Some(rate) => paced(rate, load.events),
            });
        }
    });
    let wall = begun.elapsed();
    if load.rate.is_some_and(|rate| rate < SLEEPS_BELOW) {
        // The deferred work of the drain for the last events is counted.
        thread::sleep(Duration::from_millis(900));
    }
    (wall, processor().saturating_sub(before))
}

fn burst(from: u64, to: u64) {
    for i in from..to {
        tracepoint::trace!(tracepoint_benches::small(i as i32, 7, i.cast_signed()));
    }
}

fn paced(rate: u64, events: u64) {
    let (begun, mut fired) = (Instant::now(), 0);
    while fired < events {
        let due = (begun.elapsed().as_nanos() as u64 * (rate / 1000) / 1_000_000).min(events);
        burst(fired, due.max(fired));
        fired = fired.max(due);
        if rate < SLEEPS_BELOW {
            thread::sleep(TICK);
        }
    }
}

fn processor() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::try_from(time).unwrap_or_default()
}
