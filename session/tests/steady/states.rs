//! Steady states: a thread with a ring records, packet after packet, and nothing else changes.

use std::hint::spin_loop;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tracepoint_ring::channel::Packet;
use tracepoint_session::sinks::{Sink, SinkError, StreamInfo};
use tracepoint_session::{Channel, Session};
use tracepoint_session_spec::{Rule, TriggerAction, TriggerCondition};

tracepoint::define_trace! {
    provider = "steady";
    numbers(a: i32, b: i32, c: i64) { a: i32 = a, b: i32 = b, c: i64 = c }
    text(words: &str, n: u64) { words: str = words, n: u64 = n }
}

/// Thirty-two bytes.
const WORDS: &str = "thirty-two bytes of text, as is.";
const RING: usize = 64 << 10;
const PACKETS: u64 = 16;
/// A lower and an upper bound on the size of a record of either kind.
const SMALLEST: u64 = 24;
const LARGEST: u64 = 56;
/// Number of times that the whole ring is written.
const LAPS: u64 = 20;
/// More events than a ring holds, of either kind.
const LAP: u64 = RING as u64 / SMALLEST;
/// Fewer events than the ring holds in addition to the packets that are not closed or not taken yet.
const HALF: u64 = RING as u64 / 2 / LARGEST;

/// Takes packets, and counts their records.
struct Counting(Arc<AtomicU64>);

impl Sink for Counting {
    fn name(&self) -> String {
        "a count".to_owned()
    }

    fn packet(&mut self, _: &StreamInfo, packet: &Packet<'_>) -> Result<(), SinkError> {
        self.0.store(packet.events_after, Ordering::Relaxed);
        Ok(())
    }
}

/// Fires `count` events. Under discard it waits, without system calls, until the ring has space.
fn fire(event: fn(u64), count: u64, fired: &mut u64, taken: Option<&AtomicU64>) {
    for _ in 0..count {
        while taken.is_some_and(|taken| *fired - taken.load(Ordering::Relaxed) > HALF) {
            spin_loop();
        }
        event(*fired);
        *fired += 1;
    }
}

/// The policy whose events may wake the drain.
pub(crate) const WAKING: &str = "discard, waking the drain";

/// Maximum number of packets that `measure` below closes.
pub(crate) const MAX_PACKETS: u64 = LAPS * LAP * LARGEST / (RING as u64 / PACKETS / 2);

/// Calls `measure` with the name and the steady state of each kind of event under each policy.
pub(crate) fn in_each(mut measure: impl FnMut(&str, &mut dyn FnMut())) {
    let numbers: fn(u64) = |n| tracepoint::trace!(numbers(n as i32 & 0xFF, 2, n.cast_signed()));
    let text: fn(u64) = |n| tracepoint::trace!(text(WORDS, n));
    for (policy, channel) in [
        ("discard", Channel::discard(RING).no_wake()),
        (WAKING, Channel::discard(RING)),
        ("overwrite", Channel::overwrite(RING)),
    ] {
        for (name, event) in [("numbers", numbers), ("text", text)] {
            let records = Arc::new(AtomicU64::new(0));
            let place = tempfile::tempdir_in("/dev/shm").expect("a directory in memory");
            let session = Session::builder("steady").events("*").dir(place.path()).sink(Counting(Arc::clone(&records)));
            let session = session.channel(channel.clone().packets(PACKETS as usize)).start().expect("it starts");
            let taken = (policy != "overwrite").then_some(&*records);
            let mut fired = 0;
            fire(event, 2 * LAP, &mut fired, taken);
            measure(&format!("{name}, {policy}"), &mut || fire(event, LAPS * LAP, &mut fired, taken));
            let summary = session.stop().expect("it stops");
            let event = summary.events().iter().find(|event| event.fired > 0).expect("it fired");
            assert_eq!((event.fired, event.recorded), (fired, fired), "{event:?}");
            let streams = &summary.account().expect("a sink has one").channels[0].streams;
            // The ring of the flight recorder was overwritten many times.
            assert!(taken.is_some() || streams[0].overwritten > (LAPS / 2) * LAP, "{streams:?}");
        }
    }
}

/// The process has its own run directory.
pub(crate) const RUN_DIR: &str = "TRACEPOINT_RUN_DIR";

/// Calls `measure` with a steady state under triggers, of which one matches no event and one all of them. Needs a run directory.
pub(crate) fn under_triggers(measure: impl FnOnce(&mut dyn FnMut())) {
    let (none, all) = (Rule::new("steady:numbers").filter("c == -1"), Rule::new("steady:numbers").filter("b == 2"));
    let session = Session::builder("watched").events("*").channel(Channel::overwrite(RING).packets(PACKETS as usize));
    let session = session
        .trigger(TriggerCondition::Event(none), TriggerAction::Notify)
        .trigger(TriggerCondition::Event(all), TriggerAction::Notify);
    let session = session.start().expect("it starts");
    let mut fired = 0;
    let event: fn(u64) = |n| tracepoint::trace!(numbers(n as i32 & 0xFF, 2, n.cast_signed()));
    fire(event, 2 * LAP, &mut fired, None);
    measure(&mut || fire(event, LAPS * LAP, &mut fired, None));
    session.stop().expect("it stops");
}
