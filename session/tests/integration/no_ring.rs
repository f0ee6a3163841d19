//! Events of threads without a ring are lost and counted.

use crate::common::{Outcome, assert_balances, event, place, view};
use std::sync::Barrier;
use std::thread;
use tracepoint_session::sinks::CtfSink;
use tracepoint_session::{Channel, Session};

tracepoint::define_trace! {
    provider = "ringless";
    pub entered(number: u64) { number: u64 = number }
}

const THREADS: u64 = 8;

#[test]
fn events_without_a_ring_are_counted() -> Outcome {
    own_process!();
    let place = place();
    let dir = place.path().join("trace");
    let channel = Channel::discard(64 << 10).spares(2).max_rings(2);
    let session =
        Session::builder("crowd").events("ringless:*").channel(channel).sink(CtfSink::create(&dir)?).start()?;
    // All at the same time: none releases its ring before the last one has requested one.
    let barrier = Barrier::new(THREADS as usize);
    thread::scope(|scope| {
        for number in 0..THREADS {
            let barrier = &barrier;
            scope.spawn(move || {
                tracepoint::trace!(entered(number));
                barrier.wait();
            });
        }
    });
    let summary = session.stop()?;
    let event = event(&summary, "ringless:entered");
    assert_eq!((event.fired, event.recorded, event.lost["no_ring"]), (THREADS, 2, THREADS - 2));
    let viewed = view(&[&dir]);
    assert_eq!(viewed.discarded_events(), THREADS - 2, "{}", viewed.warnings);
    assert_balances(&dir);
    Ok(())
}
