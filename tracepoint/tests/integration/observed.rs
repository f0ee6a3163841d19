//! Aggregates alone, and together with a channel: each event is recorded once and observed once, after its commit, on either path.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tracepoint::field::Value;
use tracepoint::marker::{Aggregate, FieldRange, FieldView, Subscriber};
use tracepoint_ring::channel::{AnonymousMemory, Channel, OpenChannel};

tracepoint::define_trace! {
    provider = "observed";
    said(n: i64, words: &str) { n: i64 = n, words: str = words, size: u64 = words.len() as u64 }
    timed(n: i64) { n: i64 = n }
}

/// Stores the numbers that it sees, and how many events the channel had recorded by then.
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
    // Two packets: the full path switches between them repeatedly.
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

/// Stores the times that it gets, and panics at each third event.
struct Times {
    needs_time: bool,
    times: Mutex<Vec<u64>>,
}

impl Aggregate for Times {
    fn observe(&self, time: u64, event: FieldView<'_>) {
        self.times.lock().unwrap_or_else(PoisonError::into_inner).push(time);
        if matches!(event.get(0), Some(Value::Signed(n)) if n % 3 == 0) {
            panic!("an aggregate fails");
        }
    }

    fn needs_time(&self) -> bool {
        self.needs_time
    }
}

/// The clock is read if an aggregate needs the time. Each one gets all events, even one that has panicked.
#[test]
fn aggregates_alone_get_each_event_and_its_time_if_one_needs_it() {
    let marker = tracepoint::find("observed:timed").expect("listed").marker().expect("has fields");
    let all = FieldRange::signed(0, i64::MIN, i64::MAX);
    // For each case: whether the aggregates need the time, and their range.
    let cases: [(&[bool], Option<FieldRange>); 7] = [
        (&[false], None),
        (&[true], None),
        (&[false], Some(all)),
        (&[true], Some(all)),
        (&[false, false], None),
        (&[false, true], None),
        (&[true, false, false], Some(all)),
    ];
    for (needs, range) in cases {
        let subscribe = |needs_time: &bool| {
            let times = Arc::new(Times { needs_time: *needs_time, times: Mutex::default() });
            let subscriber = Subscriber::aggregate(Arc::<Times>::clone(&times));
            let subscriber = range.map_or(subscriber.clone(), |range| subscriber.in_range(range));
            (marker.subscribe(subscriber).expect("switches"), times)
        };
        let subscribed: Vec<_> = needs.iter().map(subscribe).collect();
        let before = tracepoint_ring::clock::now();
        (0..9).for_each(trace_timed);
        let after = tracepoint_ring::clock::now();
        for (_, times) in &subscribed {
            let times = times.times.lock().unwrap_or_else(PoisonError::into_inner);
            assert_eq!(times.len(), 9, "{needs:?}");
            let expected = if needs.contains(&true) { before..=after } else { 0..=0 };
            assert!(times.iter().all(|time| expected.contains(time)), "{needs:?}: {times:?} in {expected:?}");
        }
    }
    trace_timed(0);
}
