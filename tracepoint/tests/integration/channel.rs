//! Channels: invalid configurations, refused events, lost events and their counters.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tracepoint::marker::{Aggregate, Decision, FieldView, Filter, Subscriber, Subscription};
use tracepoint_ring::channel::{AnonymousMemory, Channel, HEADER_SIZE, Loss, OpenChannel};

tracepoint::define_trace! {
    provider = "channel";
    numbered(n: u64) { n: u64 = n }
    sized(bytes: &[u8]) { bytes: [u8] = bytes }
    wrapped(n: u64) { n: u64 = n }
    odd(n: u64) { n: u64 = n }
    braked(n: u64) { n: u64 = n }
    sieved(n: u64) { n: u64 = n }
    nul(text: &str) { text: str = text }
    recursive(n: u64) { n: u64 = { trace_recursive(n + 1); n } }
}

fn open(config: Channel) -> Arc<OpenChannel> {
    OpenChannel::open(config, [6; 16], 3, 4, Box::new(AnonymousMemory)).expect("opens")
}

fn record(name: &str, channel: &Arc<OpenChannel>) -> Subscription {
    let marker = tracepoint::find(name).expect("listed").marker().expect("has fields");
    marker.subscribe(Subscriber::record(Arc::clone(channel), channel.add_event().expect("an id"))).expect("switches")
}

#[test]
fn invalid_configurations_are_refused() {
    own_process!();
    let open =
        |config| OpenChannel::open(config, [0; 16], 0, 1, Box::new(AnonymousMemory)).expect_err("refused").to_string();
    assert!(open(Channel::discard(1000)).contains("packets of 120 bytes; they need 512 bytes"));
    assert!(open(Channel::discard(1 << 20).packets(1)).contains("at least 2 packets"));
    assert!(open(Channel::discard(1 << 20).name("a/b")).contains("`a/b` is not a channel name"));
    assert!(open(Channel::discard(1 << 20).max_rings(0)).contains("at least one ring"));
}

#[test]
fn ids_end_at_sixteen_bits() {
    own_process!();
    let channel =
        OpenChannel::open(Channel::discard(1 << 14).spares(1), [0; 16], 0, 1 << 20, Box::new(AnonymousMemory))
            .expect("opens");
    for id in 0..=u16::MAX {
        assert_eq!(channel.add_event().expect("an id").get(), id);
    }
    let refused = channel.add_event().expect_err("the 65,537th").to_string();
    assert_eq!(refused, "the channel was opened for 65536 events, and all their ids are allocated");
    channel.close();
}

#[test]
fn a_record_fits_or_is_counted_as_too_large() {
    own_process!();
    let config = Channel::discard(8 * 4096);
    let largest = config.max_record_size() - 8 - 4; // less the header word and the sequence's length
    let channel = open(config);
    let subscription = record("channel:sized", &channel);
    trace_sized(&vec![1; largest + 1]);
    trace_sized(&vec![2; largest]);
    trace_sized(&[]);
    Subscription::end_all(vec![subscription]);
    let event = channel.account().events[0].clone();
    assert_eq!((event.fired, event.recorded, event.lost(Loss::TooLarge)), (3, 2, 1));
    channel.close();
}

/// Receives all events, and does nothing.
struct Watch;

impl Aggregate for Watch {
    fn observe(&self, _: u64, _: FieldView<'_>) {}
}

/// Events for which a full ring has no space are counted by event and reason, without reading its packets, until the consumer releases one.
/// This is independent of their sizes, of the flusher closing the open packet, and of an aggregate in addition to the channel.
#[test]
fn what_a_full_ring_loses_is_counted_until_it_has_room() {
    own_process!();
    const PACKETS: u64 = 4;
    const SIZE: u64 = 2048;
    // Records of 16 bytes.
    let fits = PACKETS * (SIZE - HEADER_SIZE as u64) / 16;
    let config = Channel::discard((PACKETS * SIZE) as usize).packets(PACKETS as usize);
    let channel = open(config.spares(1).max_rings(1).overflow(0));
    let subscriptions = ["channel:numbered", "channel:sized"].map(|name| record(name, &channel));
    let account = |id: usize| {
        let event = &channel.account().events[id];
        [event.fired, event.recorded, event.lost(Loss::RingFull), event.lost(Loss::TooLarge)]
    };
    let watched = tracepoint::find("channel:numbered").expect("listed").marker().expect("has fields");
    let mut watch = None;
    for round in 1..=3 {
        // The first event that has space again is one with the aggregate in the second round, and one of the channel alone in the third.
        if round == 3 {
            watch = None;
        }
        trace_numbered(0);
        drop(watch.take());
        (2..fits).for_each(trace_numbered);
        // There is space for a record of 16 bytes, but not for a larger one.
        (0..3).for_each(|_| trace_sized(&[0; 5]));
        trace_sized(&[0; SIZE as usize]);
        (0..4).for_each(trace_numbered);
        channel.flush(u64::MAX);
        (0..2).for_each(trace_numbered);
        watch = Some(watched.subscribe(Subscriber::aggregate(Arc::new(Watch))).expect("switches"));
        (0..2).for_each(trace_numbered);
        trace_sized(&[0; 5]);
        trace_sized(&[0; SIZE as usize]);
        assert_eq!(account(0), [round * (fits + 7), round * fits, round * 7, 0]);
        assert_eq!(account(1), [round * 6, 0, round * 4, round * 2]);
        let mut taken = 0;
        channel.drain(|packet| taken += (packet.bytes.len() - HEADER_SIZE) as u64 / 16);
        assert_eq!(taken, fits, "round {round}");
    }
    drop(watch);
    Subscription::end_all(subscriptions.into());
    channel.close();
}

#[test]
fn discard_keeps_the_oldest_and_overwrite_the_newest() {
    own_process!();
    for (config, overwrites) in [(Channel::discard(8 * 512).overflow(0), false), (Channel::overwrite(8 * 512), true)] {
        let channel = open(config);
        let subscription = record("channel:wrapped", &channel);
        for n in 0..1000 {
            trace_wrapped(n);
        }
        Subscription::end_all(vec![subscription]);
        let event = channel.account().events[0].clone();
        assert_eq!(event.fired, 1000);
        assert_eq!(event.recorded + event.lost(Loss::RingFull), 1000);
        assert_eq!(event.recorded == 1000, overwrites);
        let mut numbers = Vec::new();
        let finished = channel.finish(|packet| {
            for record in packet.bytes[96..].chunks_exact(16) {
                numbers.push(u64::from_le_bytes(record[8..].try_into().expect("eight bytes")));
            }
        });
        finished.expect("no subscriber is left");
        let kept = numbers.len() as u64;
        let first = if overwrites { 1000 - kept } else { 0 };
        assert_eq!(numbers, (first..first + kept).collect::<Vec<_>>());
        assert!(kept >= 7 * 26, "at least all packets but one are kept, {kept} records");
        channel.close();
    }
}

struct Odd;

impl Filter for Odd {
    fn accept(&self, event: FieldView<'_>) -> bool {
        matches!(event.get(0), Some(tracepoint::field::Value::Unsigned(n)) if n % 2 == 1)
    }
}

#[test]
fn a_filter_sees_the_fields_before_anything_is_reserved() {
    own_process!();
    let channel = open(Channel::discard(1 << 14));
    let marker = tracepoint::find("channel:odd").expect("listed").marker().expect("has fields");
    let id = channel.add_event().expect("an id");
    let subscription =
        marker.subscribe(Subscriber::record(Arc::clone(&channel), id).filter(Arc::new(Odd))).expect("switches");
    for n in 0..10 {
        trace_odd(n);
    }
    drop(subscription);
    let event = channel.account().events[0].clone();
    assert_eq!((event.fired, event.recorded, event.filtered), (10, 5, 5));
    channel.close();
}

/// Accepts the first event of each value, suppresses the others, and stores the time.
struct First(AtomicU64);

impl Filter for First {
    fn accept(&self, _: FieldView<'_>) -> bool {
        unreachable!("the stage asks `decide`");
    }

    fn decide(&self, time: u64, event: FieldView<'_>) -> Decision {
        assert!(time > 0);
        match event.get(0) {
            Some(tracepoint::field::Value::Unsigned(0)) => Decision::Refuse,
            _ if self.0.fetch_add(1, Ordering::Relaxed) == 0 => Decision::Accept,
            _ => Decision::Suppress,
        }
    }
}

#[test]
fn a_limit_suppresses_events_and_counts_them() {
    own_process!();
    let channel = open(Channel::discard(1 << 14));
    let marker = tracepoint::find("channel:braked").expect("listed").marker().expect("has fields");
    let id = channel.add_event().expect("an id");
    let subscriber = Subscriber::record(Arc::clone(&channel), id).filter(Arc::new(First(AtomicU64::new(0))));
    let subscription = marker.subscribe(subscriber).expect("switches");
    (0..10).for_each(trace_braked);
    drop(subscription);
    let event = channel.account().events[0].clone();
    assert_eq!((event.fired, event.recorded, event.filtered, event.suppressed, event.total_lost()), (10, 1, 1, 8, 0));
    channel.close();
}

#[test]
fn a_nul_in_a_text_is_replaced_and_counted() {
    own_process!();
    let channel = open(Channel::discard(1 << 14));
    let subscription = record("channel:nul", &channel);
    trace_nul("a\0b");
    trace_nul("plain");
    drop(subscription);
    assert_eq!(channel.account().streams[0].altered, 1);
    let mut records = Vec::new();
    channel.finish(|packet| records.extend_from_slice(&packet.bytes[96..])).expect("no subscriber is left");
    assert_eq!(&records[8..12], b"a\x1ab\0");
    channel.close();
}

#[test]
fn an_endless_recursion_ends() {
    own_process!();
    let channel = open(Channel::discard(1 << 14));
    let subscription = record("channel:recursive", &channel);
    let before = tracepoint::runtime::unserved_events();
    trace_recursive(0);
    assert!(tracepoint::runtime::unserved_events() > before, "the deepest event was not served, and counted");
    drop(subscription);
    let event = channel.account().events[0].clone();
    assert_eq!(event.fired, event.recorded);
    assert_eq!(event.fired, 64);
    channel.close();
}

#[test]
#[should_panic(expected = "given by another channel")]
fn an_id_of_another_channel_is_refused() {
    let (one, other) = (open(Channel::discard(1 << 14)), open(Channel::discard(1 << 14)));
    let id = one.add_event().expect("an id");
    let _ = Subscriber::record(other, id);
}

#[test]
fn a_channel_is_not_finished_under_its_subscribers() {
    own_process!();
    let channel = open(Channel::discard(1 << 14));
    let subscription = record("channel:numbered", &channel);
    trace_numbered(1);
    let refused = channel.finish(|_| panic!("nothing is drained")).expect_err("a subscriber is left");
    assert_eq!(refused, tracepoint_ring::channel::FinishError::Subscribed);
    trace_numbered(2);
    drop(subscription);
    let mut records = 0;
    channel.finish(|packet| records += packet.events_after - packet.events_before).expect("no subscriber is left");
    assert_eq!(records, 2);
    channel.close();
}

/// Provides a text, and panics when it is dropped, which is after the values were delivered.
struct PanicsLate;

impl PanicsLate {
    fn text(&self) -> &'static str {
        let _ = self;
        "delivered"
    }
}

impl Drop for PanicsLate {
    fn drop(&mut self) {
        panic!("the drop of a temporary");
    }
}

tracepoint::define_trace! {
    provider = "channel";
    late() { text: str = PanicsLate.text() }
    judged(n: u64) { n: u64 = n }
}

#[test]
fn a_panic_after_delivery_loses_nothing() {
    own_process!();
    let channel = open(Channel::discard(1 << 14));
    let subscription = record("channel:late", &channel);
    trace_late();
    trace_late();
    drop(subscription);
    let event = channel.account().events[0].clone();
    assert_eq!((event.fired, event.recorded, event.total_lost()), (2, 2, 0));
    channel.close();
}

struct Panics;

impl Filter for Panics {
    fn accept(&self, _: FieldView<'_>) -> bool {
        panic!("a filter");
    }
}

#[test]
fn a_panicking_filter_loses_the_event() {
    own_process!();
    let channel = open(Channel::discard(1 << 14));
    let marker = tracepoint::find("channel:judged").expect("listed").marker().expect("has fields");
    let id = channel.add_event().expect("an id");
    let subscriber = Subscriber::record(Arc::clone(&channel), id).filter(Arc::new(Panics));
    let subscription = marker.subscribe(subscriber).expect("switches");
    trace_judged(1);
    drop(subscription);
    let event = channel.account().events[0].clone();
    assert_eq!((event.fired, event.filtered, event.lost(Loss::Panicked)), (1, 0, 1));
    channel.close();
}

/// Accepts only multiples of this number.
struct Multiples(u64);

impl Filter for Multiples {
    fn accept(&self, event: FieldView<'_>) -> bool {
        matches!(event.get(0), Some(tracepoint::field::Value::Unsigned(n)) if n % self.0 == 0)
    }
}

#[test]
fn filters_change_while_events_fire_and_none_is_missed() {
    own_process!();
    const EVENTS: u64 = 200_000;
    let channel = open(Channel::overwrite(8 * 4096));
    let subscription = record("channel:sieved", &channel);
    let changes = std::thread::scope(|scope| {
        let firing = scope.spawn(|| (0..EVENTS).for_each(trace_sieved));
        let mut changes = 0_u64;
        while !firing.is_finished() || changes < 3 {
            let divisor = changes % 3;
            let filter = (divisor > 0).then(|| -> Arc<dyn Filter> { Arc::new(Multiples(divisor)) });
            Subscription::filter_all([(&subscription, filter)]);
            changes += 1;
        }
        changes
    });
    Subscription::filter_all([(&subscription, Some(Arc::new(Multiples(2)) as Arc<dyn Filter>))]);
    (0..10).for_each(trace_sieved);
    let before = channel.account().events[0].clone();
    Subscription::filter_all([(&subscription, None)]);
    (0..10).for_each(trace_sieved);
    Subscription::end_all(vec![subscription]);
    let event = channel.account().events[0].clone();
    assert_eq!(event.fired, EVENTS + 20, "{changes} changes");
    assert_eq!(event.recorded + event.filtered, event.fired);
    assert!(event.filtered >= 5 && event.recorded > before.recorded);
    assert_eq!((event.recorded - before.recorded, event.filtered), (10, before.filtered));
    channel.close();
}
