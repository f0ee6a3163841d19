//! Aggregates beside a channel: each event is recorded once and shown once, behind its commit, whichever path it takes.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tracepoint::field::Value;
use tracepoint::marker::{Aggregate, FieldRange, FieldView, Subscriber};
use tracepoint_ring::channel::{AnonymousMemory, Channel, OpenChannel};

tracepoint::define_trace! {
    provider = "observed";
    said(n: i64, words: &str) { n: i64 = n, words: str = words, size: u64 = words.len() as u64 }
}

/// Keeps the numbers that it sees, and how many events the channel had recorded by then.
struct Seen {
    channel: Arc<OpenChannel>,
    events: Mutex<Vec<(i64, u64)>>,
    times: AtomicU64,
}

impl Aggregate for Seen {
    fn observe(&self, time: u64, event: FieldView<'_>) {
        let Some(Value::Signed(n)) = event.by_name("n") else { panic!("it has such a field") };
        let recorded = self.channel.account().events[0].recorded;
        self.events.lock().unwrap_or_else(PoisonError::into_inner).push((n, recorded));
        assert!(time >= self.times.swap(time, Ordering::Relaxed), "times do not go back");
    }
}

#[test]
fn events_are_shown_behind_their_commit() {
    // Two packets: the full path switches between them again and again.
    let channel = OpenChannel::open(Channel::overwrite(8192), [3; 16], 0, 1, Box::new(AnonymousMemory)).expect("opens");
    let marker = tracepoint::find("observed:said").expect("listed").marker().expect("has fields");
    let record = Subscriber::record(Arc::clone(&channel), channel.add_event().expect("an id"));
    let recording = marker.subscribe(record).expect("switches");
    let size = |low: u64, high: u64| FieldRange::unsigned(2, low, high);
    let ranges = [
        None,
        Some(FieldRange::signed(0, -3, 50)),
        Some(FieldRange::signed(0, 7, 7).others()),
        Some(size(12, u64::MAX)),
        // The field is unsigned.
        Some(FieldRange::signed(2, 0, i64::MAX)),
    ];
    let (mut watches, mut seen) = (Vec::new(), Vec::new());
    for range in ranges {
        let aggregate =
            Arc::new(Seen { channel: Arc::clone(&channel), events: Mutex::default(), times: AtomicU64::new(0) });
        let subscriber = Subscriber::aggregate(Arc::<Seen>::clone(&aggregate));
        let subscriber = range.map_or(subscriber.clone(), |range| subscriber.in_range(range));
        watches.push(marker.subscribe(subscriber).expect("switches"));
        seen.push(aggregate);
    }
    let words = ["plain", "with a \0 inside", ""];
    let numbers: Vec<i64> = (-500..500).collect();
    for n in &numbers {
        trace_said(*n, words[n.rem_euclid(3) as usize]);
    }
    drop(watches);
    trace_said(1000, "nobody sees it");
    drop(recording);
    let event = &channel.account().events[0];
    assert_eq!((event.fired, event.recorded, event.total_lost()), (1001, 1001, 0));
    let expected: [&dyn Fn(i64) -> bool; 5] =
        [&|_| true, &|n| (-3..=50).contains(&n), &|n| n != 7, &|n| n.rem_euclid(3) == 1, &|_| false];
    for (seen, expected) in seen.iter().zip(expected) {
        let events = seen.events.lock().unwrap_or_else(PoisonError::into_inner);
        let expected: Vec<_> =
            (1..).zip(&numbers).filter(|(_, n)| expected(**n)).map(|(count, n)| (*n, count)).collect();
        assert_eq!(*events, expected, "each once, and it was recorded by then");
    }
    channel.close();
}
