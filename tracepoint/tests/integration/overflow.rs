//! A thread whose ring is full continues in a spare one: no event is lost while there are any, and the order of events is known from their
//! times.

use std::sync::Arc;
use tracepoint::marker::{Subscriber, Subscription};
use tracepoint_ring::channel::{AnonymousMemory, Channel, HEADER_SIZE, Loss, OpenChannel};

tracepoint::define_trace! {
    provider = "overflow";
    step(n: u64) { n: u64 = n }
    /// Another event is fired in the middle of this one.
    around(n: u64) { n: u64 = step_of(n) }
    /// Its probe fires another one.
    before(n: u64);
}

fn step_of(n: u64) -> u64 {
    trace_step(n);
    n
}

/// Records of 16 bytes in a ring.
const IN_A_RING: u64 = 4 * (2048 - HEADER_SIZE as u64) / 16;
const RINGS: usize = 4;

/// Opens a channel with four rings; the calling thread takes the first one.
fn open(config: Channel, events: &[&str]) -> (Arc<OpenChannel>, Vec<Subscription>) {
    let channel =
        OpenChannel::open(config.packets(4).spares(RINGS).max_rings(RINGS), [1; 16], 0, 2, Box::new(AnonymousMemory))
            .expect("memory");
    let subscribe = |name: &&str| {
        let marker = tracepoint::find(name).expect("listed").marker().expect("has fields");
        let id = channel.add_event().expect("an id");
        marker.subscribe(Subscriber::record(Arc::clone(&channel), id)).expect("switches")
    };
    let subscriptions = events.iter().map(subscribe).collect();
    (channel, subscriptions)
}

/// Returns time and number of each record, and the number of its stream, in the order of the streams.
fn drained(channel: &OpenChannel) -> Vec<(u64, u64, u64)> {
    let mut found = Vec::new();
    channel.drain(|packet| {
        for record in packet.bytes[HEADER_SIZE..].chunks_exact(16) {
            let [word, n] = [0, 8].map(|at| u64::from_le_bytes(record[at..at + 8].try_into().expect("eight bytes")));
            found.push((word >> 16, n, packet.stream.instance));
        }
    });
    found
}

fn account(channel: &OpenChannel) -> [u64; 3] {
    let event = &channel.account().events[0];
    [event.fired, event.recorded, event.lost(Loss::RingFull)]
}

#[test]
fn a_thread_goes_on_in_spare_rings() {
    own_process!();
    let (channel, subscriptions) = open(Channel::discard(8 << 10), &["overflow:step"]);
    let fits = RINGS as u64 * IN_A_RING;
    (0..fits + 10).for_each(trace_step);
    assert_eq!(account(&channel), [fits + 10, fits, 10], "one more ring is one too many");
    assert_eq!(channel.overflowed(), RINGS as u64 - 1);

    channel.flush(u64::MAX);
    let mut found = drained(&channel);
    assert_eq!(found.iter().map(|(.., stream)| stream).collect::<std::collections::BTreeSet<_>>().len(), RINGS);
    found.sort_unstable();
    assert!(found.iter().map(|(_, n, _)| *n).eq(0..fits), "in order of their times");

    // Drained rings are reused.
    channel.maintain().expect("memory");
    (0..2 * IN_A_RING).for_each(trace_step);
    assert_eq!(account(&channel), [fits + 10 + 2 * IN_A_RING, fits + 2 * IN_A_RING, 10]);
    drop(subscriptions);
    channel.close();
}

#[test]
fn the_overflow_has_a_limit() {
    own_process!();
    for (limit, rings) in [(0, 1), (8 << 10, 2), (23 << 10, 3)] {
        let (channel, subscriptions) = open(Channel::discard(8 << 10).overflow(limit), &["overflow:step"]);
        let fits = rings * IN_A_RING;
        (0..fits + 10).for_each(trace_step);
        assert_eq!(account(&channel), [fits + 10, fits, 10], "{limit}");
        // Whether or not more rings are created: the full ones wait.
        channel.maintain().expect("memory");
        (0..10).for_each(trace_step);
        assert_eq!(account(&channel)[2], 20, "{limit}");
        drop(subscriptions);
        channel.close();
    }
}

/// The enclosing event might write to the ring that it has looked up.
#[test]
fn an_event_in_the_middle_of_another_stays_in_its_ring() {
    own_process!();
    let (channel, subscriptions) = open(Channel::discard(8 << 10), &["overflow:step"]);
    let (around, others) = open(Channel::discard(8 << 10), &["overflow:around"]);
    (0..IN_A_RING + 10).for_each(trace_around);
    assert_eq!(account(&channel), [IN_A_RING + 10, IN_A_RING, 10]);
    assert_eq!(account(&around), [IN_A_RING + 10, IN_A_RING + 10, 0]);
    assert_eq!((channel.overflowed(), around.overflowed()), (0, 1));
    drop((subscriptions, others));
    channel.close();
    around.close();
}

#[test]
fn an_event_of_a_probe_goes_on_in_another_ring() {
    own_process!();
    let (channel, subscriptions) = open(Channel::discard(8 << 10), &["overflow:step"]);
    let probe = register_trace_before(trace_step).expect("switches");
    (0..2 * IN_A_RING).for_each(trace_before);
    assert_eq!(account(&channel), [2 * IN_A_RING, 2 * IN_A_RING, 0]);
    drop((probe, subscriptions));
    channel.close();
}
