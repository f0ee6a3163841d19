//! Rings that are too small discard the newest events, and count each.

use crate::common::{Outcome, assert_balances, event, lost, place, view};
use std::thread;
use tracepoint_session::sinks::CtfSink;
use tracepoint_session::{Channel, Session};

tracepoint::define_trace! {
    provider = "flood";
    pub drop_of(water: u64, name: &str) { water: u64 = water, name: str = name }
}

const THREADS: u64 = 3;
const EVENTS: u64 = 200_000;

#[test]
fn every_discarded_event_is_counted() -> Outcome {
    own_process!();
    let place = place();
    let dir = place.path().join("trace");
    let channel = Channel::discard(8 << 10).packets(4).spares(8);
    let session = Session::builder("flood").events("flood:*").channel(channel).sink(CtfSink::create(&dir)?).start()?;
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| (0..EVENTS).for_each(|i| tracepoint::trace!(drop_of(i, "splash"))));
        }
    });
    let summary = session.stop()?;
    let event = event(&summary, "flood:drop_of");
    assert_eq!(event.fired, THREADS * EVENTS);
    assert!(event.lost["ring_full"] > 0, "the rings are meant to be too small");
    assert_eq!(event.fired, event.recorded + lost(event));
    let viewed = view(&[&dir]);
    assert_eq!(viewed.lines.len() as u64, event.recorded);
    assert_eq!(viewed.discarded_events(), lost(event), "{}", viewed.warnings);
    assert_eq!(viewed.discarded_packets(), 0);
    assert_balances(&dir);
    Ok(())
}
