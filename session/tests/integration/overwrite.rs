//! A flight recorder keeps the newest events, and counts the overwritten ones.

use crate::common::{Outcome, assert_balances, event, overwritten, place, view};
use std::thread;
use tracepoint_session::sinks::CtfSink;
use tracepoint_session::{Channel, Session};

tracepoint::define_trace! {
    provider = "overwritten";
    pub sample(number: u64) { number: u64 = number }
}

const THREADS: u64 = 3;
const EVENTS: u64 = 50_000;

#[test]
fn the_newest_events_are_kept_and_the_others_counted() -> Outcome {
    own_process!();
    let place = place();
    let dir = place.path().join("trace");
    let channel = Channel::overwrite(32 << 10);
    let session =
        Session::builder("flight").events("overwritten:*").channel(channel).sink(CtfSink::create(&dir)?).start()?;
    thread::scope(|scope| {
        for thread in 0..THREADS {
            scope.spawn(move || (0..EVENTS).for_each(|i| tracepoint::trace!(sample(thread * EVENTS + i))));
        }
    });
    let summary = session.stop()?;
    let event = event(&summary, "overwritten:sample");
    assert_eq!((event.fired, event.recorded), (THREADS * EVENTS, THREADS * EVENTS));
    let overwritten = summary.account().map_or(0, overwritten);
    assert!(overwritten > 0, "the rings are meant to be too small");
    let viewed = view(&[&dir]);
    assert_eq!(viewed.lines.len() as u64 + overwritten, event.recorded);
    assert_eq!(viewed.discarded_events(), 0, "{}", viewed.warnings);
    assert!(viewed.discarded_packets() > 0);
    for thread in 1..=THREADS {
        assert_eq!(viewed.count(&format!("{{ number = {} }}", thread * EVENTS - 1)), 1, "the last one is there");
    }
    assert_balances(&dir);
    Ok(())
}
