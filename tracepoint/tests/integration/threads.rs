//! Threads that come and go while a channel records.

use std::cell::Cell;
use std::sync::Arc;
use std::thread;
use tracepoint::marker::{Subscriber, Subscription};
use tracepoint_ring::channel::{AnonymousMemory, Channel, Loss, OpenChannel, Packet};

tracepoint::define_trace! {
    provider = "threads";
    tick(n: u64) { n: u64 = n }
    late(n: u64) { n: u64 = n }
    crowd(n: u64) { n: u64 = n }
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
    let mut streams = std::collections::BTreeMap::new();
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
    let unserved = tracepoint::unserved_events();
    assert_eq!(event.fired + unserved, 20, "recorded, or counted as come too late");
    assert_eq!(event.fired, event.recorded);
    channel.close();
}
