//! The choice of a clock. One test: a process has one clock.
#![forbid(unsafe_code)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tracepoint::clock::{self, Clock};
use tracepoint::marker::{Subscriber, Subscription};
use tracepoint_ring::channel::{AnonymousMemory, Channel, OpenChannel};

tracepoint::define_trace! {
    provider = "clock_choice";
    stepped(n: u64, text: &str) { n: u64 = n, text: str = text }
}

static TIME: AtomicU64 = AtomicU64::new(0);

/// Counts the readings.
fn readings() -> u64 {
    TIME.fetch_add(1, Ordering::Relaxed)
}

fn panics() -> u64 {
    panic!("no time")
}

fn open() -> Arc<OpenChannel> {
    OpenChannel::open(Channel::discard(1 << 16).spares(2), [3; 16], 1, 1, Box::new(AnonymousMemory)).expect("opens")
}

/// Records some events, and returns all bytes of all streams, the first packets included.
fn record() -> Vec<Vec<u8>> {
    let channel = open();
    let marker = tracepoint::find("clock_choice:stepped").expect("listed").marker().expect("has fields");
    let id = channel.add_event().expect("an id");
    let subscription = marker.subscribe(Subscriber::record(Arc::clone(&channel), id)).expect("switches");
    for n in 0..2000 {
        trace_stepped(n, "text");
    }
    Subscription::end_all(vec![subscription]);
    let mut packets = Vec::new();
    let finished = channel.finish(|packet| {
        packets.push(channel.first_packet(packet.stream));
        packets.push(packet.bytes.to_vec());
    });
    finished.expect("no subscriber is left");
    let event = channel.account().events[0].clone();
    assert_eq!((event.fired, event.recorded + event.total_lost()), (2000, 2000));
    channel.close();
    packets
}

#[test]
fn one_clock_at_a_time() {
    own_process!();
    // While a channel is open the clock cannot change; selecting the clock in use is allowed.
    let channel = open();
    clock::select(Clock::Monotonic).expect("the clock in use");
    let refused = clock::select(Clock::User(readings)).expect_err("another clock");
    assert_eq!(refused.clock, clock::name());
    let message =
        format!("the clock cannot be changed while channels are open that use another one ({})", refused.clock);
    assert_eq!(refused.to_string(), message);
    channel.close();
    channel.close();
    clock::select(Clock::User(readings)).expect("closed, however often");
    let channel = open();
    clock::select(Clock::User(readings)).expect("the clock in use");
    clock::select(Clock::User(panics)).expect_err("another function");
    // A channel that fails to open does not keep the clock.
    OpenChannel::open(Channel::discard(1), [3; 16], 1, 1, Box::new(AnonymousMemory)).expect_err("too small");
    drop(channel.account());
    channel.close();

    // With a user clock, equal runs record equal times.
    let mut runs = (0..2).map(|_| {
        TIME.store(1 << 40, Ordering::Relaxed);
        record()
    });
    let first = runs.next().expect("two runs");
    assert!(first.len() > 8, "several packets");
    assert!(runs.next().as_ref() == Some(&first), "the second run differs");

    // A user clock that panics does not reach the traced code.
    clock::select(Clock::User(panics)).expect("no channel is open");
    record();
    assert_eq!(clock::now(), 0);

    clock::select(Clock::Coarse).expect("no channel is open");
    assert_eq!(clock::name(), "coarse");
    record();
    let (coarse, error) = (clock::now(), clock::error_bound());
    clock::select(Clock::System).expect("no channel is open");
    assert_eq!((clock::name(), clock::error_bound()), ("clock_gettime", 0));
    let time = clock::now();
    assert!(
        coarse <= time && (error > 0 || !cfg!(all(target_os = "linux", not(tp_portable)))),
        "{coarse} {time} {error}"
    );
    record();
}
