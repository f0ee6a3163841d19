//! Threads that start and end while a channel records.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread;
use tracepoint::marker::{Subscriber, Subscription};
use tracepoint_ring::channel::{AnonymousMemory, Channel, HEADER_SIZE, Loss, OpenChannel, Packet};

tracepoint::define_trace! {
    provider = "threads";
    tick(n: u64) { n: u64 = n }
    late(n: u64) { n: u64 = n }
    crowd(n: u64) { n: u64 = n }
    short(n: u64) { n: u64 = n }
    growing(n: u64) { n: u64 = n }
    long(text: &str) { text: str = text }
}

fn open(name: &str, channel: Channel) -> (Arc<OpenChannel>, Subscription) {
    let channel = OpenChannel::open(channel, [4; 16], 0, 1, Box::new(AnonymousMemory)).expect("opens");
    let marker = tracepoint::find(name).expect("listed").marker().expect("has fields");
    let id = channel.add_event().expect("first id");
    let subscription = marker.subscribe(Subscriber::record(Arc::clone(&channel), id)).expect("switches");
    (channel, subscription)
}

#[test]
fn rings_of_ended_threads_are_used_again() {
    own_process!();
    let (channel, subscription) = open("threads:tick", Channel::discard(1 << 14).spares(2).max_rings(2));
    let mut streams = BTreeMap::new();
    let mut note = |packet: Packet<'_>| {
        let seen: &mut u64 = streams.entry(packet.stream.instance).or_default();
        assert_eq!(*seen, packet.events_before, "nothing vanished between two packets");
        *seen = packet.events_after;
    };
    for round in 0..50 {
        thread::spawn(move || {
            for n in 0..10 {
                trace_tick(round * 10 + n);
            }
        })
        .join()
        .expect("no panic");
        channel.maintain().expect("memory");
        channel.drain(&mut note);
    }
    Subscription::end_all(vec![subscription]);
    channel.finish(&mut note).expect("no subscriber is left");
    let event = &channel.account().events[0];
    assert_eq!((event.fired, event.recorded), (500, 500), "{event:?}");
    assert!(streams.len() <= 2, "two rings served fifty threads: {streams:?}");
    assert_eq!(streams.values().sum::<u64>(), 500);
    channel.close();
}

#[test]
fn threads_without_a_ring_are_counted() {
    own_process!();
    let (channel, subscription) = open("threads:crowd", Channel::discard(1 << 14).spares(1).max_rings(1));
    trace_crowd(1);
    thread::scope(|scope| {
        for n in 0..4 {
            scope.spawn(move || trace_crowd(n));
        }
    });
    Subscription::end_all(vec![subscription]);
    let event = &channel.account().events[0];
    assert_eq!((event.fired, event.recorded, event.lost(Loss::NoRing)), (5, 1, 4));
    let ringless = channel.account().streams.last().cloned().expect("always there");
    assert_eq!((ringless.instance, ringless.discarded), (u64::from(u32::MAX), 4));
    channel.close();
}

/// Returns the thread of a packet, and its numbers, from records of a header word and a number.
fn thread_and_numbers(packet: &Packet<'_>) -> (u32, Vec<u64>) {
    let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
    let records = packet.bytes[HEADER_SIZE..].chunks_exact(16);
    (number(&packet.bytes[80..88]) as u32, records.map(|record| number(&record[8..])).collect())
}

/// Threads follow each other, without a drain and without new rings meanwhile. For a channel that begins with small rings, and for one with
/// rings of a given size, which are reused until half of the ring waits for the drain.
#[test]
fn rings_are_handed_on_before_they_are_drained() {
    own_process!();
    for (config, threads) in [(Channel::default().at_first(1), 120), (Channel::discard(1 << 14).spares(4), 4 * 4)] {
        let (channel, subscription) = open("threads:short", config);
        for thread in 0..threads {
            thread::spawn(move || (0..3).for_each(|n| trace_short(10 * thread + n))).join().expect("no panic");
        }
        let event = &channel.account().events[0];
        assert_eq!((event.fired, event.recorded), (3 * threads, 3 * threads), "{event:?}");
        let mut seen = BTreeMap::new();
        // No packet is open: each thread has closed its own.
        channel.drain(|packet| {
            let (tid, numbers) = thread_and_numbers(&packet);
            let first = numbers[0];
            assert_eq!(numbers, [first, first + 1, first + 2], "a packet has the events of one thread");
            seen.insert(first / 10, tid);
        });
        assert!(seen.keys().copied().eq(0..threads), "{seen:?}");
        assert!(seen.values().collect::<std::collections::BTreeSet<_>>().len() > 1, "the threads have their own ids");
        Subscription::end_all(vec![subscription]);
        channel.finish(|packet| assert_eq!(packet.bytes.len(), HEADER_SIZE, "the end of a stream")).expect("finishes");
        channel.close();
    }
}

/// Records of a number in a small ring: 16 packets of 1 KiB.
const IN_SMALL: u64 = 16 * ((1024 - HEADER_SIZE as u64) / 16);

#[test]
fn a_thread_goes_on_in_a_large_ring() {
    own_process!();
    let (channel, subscription) = open("threads:growing", Channel::default().at_first(1));
    let fire = |events| thread::spawn(move || (0..events).for_each(trace_growing)).join().expect("no panic");
    let found = || {
        let event = &channel.account().events[0];
        [event.fired, event.recorded, event.lost(Loss::NoRing)]
    };
    fire(10_000);
    assert_eq!(found(), [10_000, 10_000, 0]);
    // This thread keeps the large ring, so the next one stays in its small one, and then has none.
    (0..1000).for_each(trace_growing);
    fire(IN_SMALL + 5);
    assert_eq!(found(), [11_005 + IN_SMALL, 11_000 + IN_SMALL, 5]);
    let mut streams: BTreeMap<_, Vec<u64>> = BTreeMap::new();
    channel.flush(u64::MAX);
    channel.drain(|packet| streams.entry(packet.stream.instance).or_default().extend(thread_and_numbers(&packet).1));
    assert_eq!(streams.values().map(Vec::len).sum::<usize>() as u64, 11_000 + IN_SMALL);
    assert_eq!(streams[&0].len() as u64, 11_000 - IN_SMALL, "what came behind half of a small ring");
    Subscription::end_all(vec![subscription]);
    channel.close();
}

/// It would be too large for a small ring.
#[test]
fn a_large_record_goes_to_a_large_ring() {
    own_process!();
    let (channel, subscription) = open("threads:long", Channel::default().at_first(1));
    let text = "x".repeat(3000);
    trace_long("short");
    trace_long(&text);
    let too_large = "x".repeat(1 << 20);
    trace_long(&too_large);
    // This thread has the only large ring.
    let other = text.clone();
    thread::spawn(move || trace_long(&other)).join().expect("no panic");
    let event = &channel.account().events[0];
    let lost = [Loss::TooLarge, Loss::NoRing].map(|reason| event.lost(reason));
    assert_eq!((event.fired, event.recorded, lost), (4, 2, [1, 1]));
    Subscription::end_all(vec![subscription]);
    channel.close();
}

/// Fires when the thread's locals are destroyed.
struct Late(Cell<u64>);

impl Drop for Late {
    fn drop(&mut self) {
        trace_late(self.0.get());
    }
}

thread_local! {
    static LATE: Late = const { Late(Cell::new(0)) };
}

#[test]
fn destructors_of_thread_locals_may_trace() {
    own_process!();
    let (channel, subscription) = open("threads:late", Channel::discard(1 << 14));
    for n in 1..=10 {
        thread::spawn(move || {
            LATE.with(|late| late.0.set(n));
            trace_late(n);
        })
        .join()
        .expect("no panic");
    }
    Subscription::end_all(vec![subscription]);
    let event = &channel.account().events[0];
    let unserved = tracepoint::runtime::unserved_events();
    assert_eq!(event.fired + unserved, 20, "recorded, or counted as come too late");
    assert_eq!(event.fired, event.recorded);
    channel.close();
}
