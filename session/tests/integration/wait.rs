//! A channel that waits: events wait for the drain, up to the configured time.

use crate::common::{Outcome, assert_balances, event, lost, place, view};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Barrier, Mutex, PoisonError};
use std::thread;
use std::time::Duration;
use tracepoint::Probe;
use tracepoint_ring::channel::Packet;
use tracepoint_session::sinks::CtfSink;
use tracepoint_session::{Channel, Session};
use tracepoint_sinks::{Sink, SinkError, StreamInfo};

tracepoint::define_trace! {
    provider = "patient";
    pub step(n: u64) { n: u64 = n }
    pub inner(n: u64) { n: u64 = n }
}

const THREADS: u64 = 2;
const EVENTS: u64 = 20_000;

/// Serialises the tests, which enable the same events.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// A sink that reports its first packet, and blocks until it is released.
struct Blocks {
    reached: Sender<()>,
    go: Receiver<()>,
}

impl Sink for Blocks {
    fn name(&self) -> String {
        "blocks".to_owned()
    }

    fn packet(&mut self, _: &StreamInfo, _: &Packet<'_>) -> Result<(), SinkError> {
        // Both fail once the test has released the sink.
        let _ = self.reached.send(());
        let _ = self.go.recv();
        Ok(())
    }
}

/// Rings for a few hundred events, far fewer than are fired between two rounds of the drain.
fn small(most: Duration) -> Channel {
    Channel::wait(8 << 10, most).packets(4)
}

#[test]
fn waiting_events_are_not_lost() -> Outcome {
    own_process!();
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let place = place();
    let dir = place.path().join("trace");
    let session = Session::builder("patient")
        .events("patient:step")
        .channel(small(Duration::from_secs(10)))
        .sink(CtfSink::create(&dir)?)
        .start()?;
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| (0..EVENTS).for_each(|n| tracepoint::trace!(step(n))));
        }
    });
    let summary = session.stop()?;
    let step = event(&summary, "patient:step");
    assert_eq!((step.fired, step.recorded), (THREADS * EVENTS, THREADS * EVENTS));
    let notes = summary.accounts[0].1.notes;
    assert!(notes.waited > 0 && notes.waited_ns > 0, "{notes:?}");
    assert_eq!(view(&[&dir]).lines.len() as u64, THREADS * EVENTS);
    assert_balances(&dir);
    Ok(())
}

/// If a sink blocks, a thread waits once; after that, events are lost as under `discard`.
#[test]
fn waits_are_bounded_by_the_maximum() -> Outcome {
    own_process!();
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let ((reached, is_reached), (let_go, go)) = (channel(), channel());
    let session = Session::builder("blocked")
        .events("patient:step")
        .channel(small(Duration::from_millis(20)))
        .sink(Blocks { reached, go })
        .start()?;
    let fire = |count: u64| (0..count).for_each(|n| tracepoint::trace!(step(n)));
    fire(1000);
    is_reached.recv()?;
    fire(EVENTS);
    drop((let_go, is_reached));
    let summary = session.stop()?;
    let step = event(&summary, "patient:step");
    assert_eq!(step.fired, 1000 + EVENTS);
    assert_eq!(step.fired, step.recorded + lost(step));
    assert!(step.lost["ring_full"] > 0);
    // One wait for the first packets, one for those after the sink had blocked, and perhaps one for the packets that it had taken before.
    let notes = summary.accounts[0].1.notes;
    assert!((1..=4).contains(&notes.waited), "{notes:?}");
    Ok(())
}

/// Rings come from another thread than the drain.
#[test]
fn threads_wait_for_rings_while_a_sink_blocks() -> Outcome {
    const CROWD: u64 = 64;
    own_process!();
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let ((reached, is_reached), (let_go, go)) = (channel(), channel());
    let session = Session::builder("crowd")
        .events("patient:step")
        .channel(Channel::wait(64 << 10, Duration::from_secs(10)).spares(2).at_first(2))
        .sink(Blocks { reached, go })
        .start()?;
    tracepoint::trace!(step(0));
    is_reached.recv()?;
    // All at the same time: none releases its ring before the last one has requested one.
    let barrier = Barrier::new(CROWD as usize);
    thread::scope(|scope| {
        for n in 1..=CROWD {
            let barrier = &barrier;
            scope.spawn(move || {
                tracepoint::trace!(step(n));
                barrier.wait();
            });
        }
    });
    drop((let_go, is_reached));
    let summary = session.stop()?;
    let step = event(&summary, "patient:step");
    assert_eq!((step.fired, step.recorded), (1 + CROWD, 1 + CROWD), "{step:?}");
    Ok(())
}

/// Sets a flag when it is dropped.
struct Freed(Arc<AtomicBool>);

impl Drop for Freed {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The drain frees lists that were replaced inside probes, which takes a grace period. Threads that wait for the drain inside a section
/// must not wait for that, and must not block the drain.
#[test]
fn replaced_lists_are_freed_while_events_wait() -> Outcome {
    own_process!();
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let place = place();
    let session = Session::builder("freed")
        .events("patient:step")
        .channel(small(Duration::from_secs(10)))
        .sink(CtfSink::create(place.path().join("trace"))?)
        .start()?;
    let freed = Arc::new(AtomicBool::new(false));
    let own: Arc<Mutex<Option<Probe<inner>>>> = Arc::default();
    let (inside, kept) = (Arc::clone(&own), Freed(Arc::clone(&freed)));
    let probe = register_trace_inner(move |_| {
        let _ = &kept;
        drop(inside.lock().unwrap_or_else(PoisonError::into_inner).take());
    })?;
    *own.lock().unwrap_or_else(PoisonError::into_inner) = Some(probe);
    trace_inner(0);
    let fired = AtomicU64::new(0);
    thread::scope(|scope| {
        for _ in 0..THREADS {
            // More events than the rings hold, without a time limit.
            scope.spawn(|| {
                while !freed.load(Ordering::Relaxed) || fired.load(Ordering::Relaxed) < EVENTS {
                    trace_step(fired.fetch_add(1, Ordering::Relaxed));
                }
            });
        }
    });
    let summary = session.stop()?;
    let step = event(&summary, "patient:step");
    assert_eq!((step.fired, step.recorded), (fired.load(Ordering::Relaxed), fired.load(Ordering::Relaxed)));
    Ok(())
}

/// A probe's event is inside another one: waiting there would delay a thread that unregisters the probe.
#[test]
fn events_inside_probes_do_not_wait() -> Outcome {
    own_process!();
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let ((reached, is_reached), (let_go, go)) = (channel(), channel());
    let session = Session::builder("inside")
        .events("patient:inner")
        .channel(small(Duration::from_secs(10)))
        .sink(Blocks { reached, go })
        .start()?;
    let probe = register_trace_step(|n| tracepoint::trace!(inner(n)))?;
    (0..EVENTS).for_each(|n| tracepoint::trace!(step(n)));
    is_reached.recv()?;
    probe.unregister();
    drop((let_go, is_reached));
    let summary = session.stop()?;
    let inner = event(&summary, "patient:inner");
    assert_eq!(inner.fired, EVENTS);
    assert!(inner.lost["ring_full"] > 0);
    assert_eq!(summary.accounts[0].1.notes.waited, 0);
    Ok(())
}
