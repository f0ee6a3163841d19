//! Events of threads without a ring are lost and counted, or wait for a ring.

use crate::common::{Outcome, assert_balances, event, place, view};
use std::sync::Barrier;
use std::thread;
use std::time::Duration;
use tracepoint_session::sinks::CtfSink;
use tracepoint_session::{Channel, Session};

tracepoint::define_trace! {
    provider = "ringless";
    pub entered(number: u64) { number: u64 = number }
}

const THREADS: u64 = 8;

/// Fires one event in each of `threads` threads at the same time: none releases its ring before the last one has requested one.
fn fire_at_once(threads: u64) {
    let barrier = Barrier::new(threads as usize);
    thread::scope(|scope| {
        for number in 0..threads {
            let barrier = &barrier;
            scope.spawn(move || {
                tracepoint::trace!(entered(number));
                barrier.wait();
            });
        }
    });
}

/// Also if events may wait: there is nothing to wait for.
#[test]
fn events_without_a_ring_are_counted() -> Outcome {
    own_process!();
    for channel in [Channel::discard(64 << 10), Channel::wait(64 << 10, Duration::from_secs(10))] {
        let place = place();
        let dir = place.path().join("trace");
        let channel = channel.spares(2).max_rings(2);
        let session =
            Session::builder("crowd").events("ringless:*").channel(channel).sink(CtfSink::create(&dir)?).start()?;
        fire_at_once(THREADS);
        let summary = session.stop()?;
        let event = event(&summary, "ringless:entered");
        assert_eq!((event.fired, event.recorded, event.lost["no_ring"]), (THREADS, 2, THREADS - 2));
        let viewed = view(&[&dir]);
        assert_eq!(viewed.discarded_events(), THREADS - 2, "{}", viewed.warnings);
        assert_balances(&dir);
    }
    Ok(())
}

#[test]
fn events_wait_for_rings_under_the_policy_wait() -> Outcome {
    own_process!();
    const CROWD: u64 = 8 * THREADS;
    let place = place();
    let dir = place.path().join("trace");
    let channel = Channel::wait(64 << 10, Duration::from_secs(10)).spares(2).at_first(2);
    let session =
        Session::builder("crowd").events("ringless:*").channel(channel).sink(CtfSink::create(&dir)?).start()?;
    fire_at_once(CROWD);
    let summary = session.stop()?;
    let event = event(&summary, "ringless:entered");
    assert_eq!((event.fired, event.recorded), (CROWD, CROWD), "{event:?}");
    assert_balances(&dir);
    Ok(())
}
