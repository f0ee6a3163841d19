//! Another thread closes the open packets of idle threads, and of threads that record at the same time.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;
use tracepoint::marker::{Subscriber, Subscription};
use tracepoint_ring::channel::{AnonymousMemory, Channel, HEADER_SIZE, OpenChannel, Packet};

tracepoint::define_trace! {
    provider = "flush";
    idle(n: u64) { n: u64 = n }
    busy(n: u64) { n: u64 = n }
    passing(n: u64) { n: u64 = n }
}

fn open(name: &str, channel: Channel) -> (Arc<OpenChannel>, Subscription) {
    let channel = OpenChannel::open(channel, [7; 16], 0, 1, Box::new(AnonymousMemory)).expect("opens");
    let marker = tracepoint::find(name).expect("listed").marker().expect("has fields");
    let id = channel.add_event().expect("first id");
    let subscription = marker.subscribe(Subscriber::record(Arc::clone(&channel), id)).expect("switches");
    (channel, subscription)
}

/// Returns the `n`s of a packet, whose records consist of a header word and a number each.
fn numbers(packet: &Packet<'_>) -> Vec<u64> {
    let records = packet.bytes[HEADER_SIZE..].chunks_exact(16);
    assert!(records.remainder().is_empty(), "whole records");
    records.map(|record| u64::from_le_bytes(record[8..].try_into().expect("eight bytes"))).collect()
}

#[test]
fn the_packet_of_an_idle_thread_is_closed_by_the_drain() {
    own_process!();
    let (channel, subscription) = open("flush:idle", Channel::discard(1 << 14));
    let (fired, looked) = (Barrier::new(2), Barrier::new(2));
    let mut seen = Vec::new();
    thread::scope(|scope| {
        scope.spawn(|| {
            trace_idle(1);
            trace_idle(2);
            fired.wait();
            looked.wait();
            trace_idle(3);
        });
        fired.wait();
        let mut drain = || channel.drain(|packet| seen.extend(numbers(&packet)));
        drain();
        channel.flush(channel.start());
        drain();
        // `flush` closed no packet, because none was begun before the channel was opened.
        channel.flush(u64::MAX);
        drain();
        assert_eq!(seen, [1, 2], "while the thread waits");
        channel.flush(u64::MAX);
        channel.drain(|packet| panic!("nothing is open: {packet:?}"));
        looked.wait();
    });
    Subscription::end_all(vec![subscription]);
    channel.finish(|packet| seen.extend(numbers(&packet))).expect("no subscriber is left");
    assert_eq!(seen, [1, 2, 3]);
    channel.close();
}

/// Number of events that each thread of the stress test fires.
fn rounds() -> u64 {
    match std::env::var("TRACEPOINT_ROUNDS") {
        Ok(rounds) => rounds.parse().expect("TRACEPOINT_ROUNDS is a number"),
        Err(_) => 200_000,
    }
}

#[test]
fn flushing_busy_threads_loses_and_repeats_no_record() {
    own_process!();
    const THREADS: u64 = 3;
    let rounds = rounds();
    // The rings hold everything that a slow drain leaves, so only the flush handshake could cause a loss.
    let (channel, subscription) = open("flush:busy", Channel::discard(4 << 20).packets(256));
    let running = AtomicU64::new(THREADS);
    let stopped = AtomicBool::new(false);
    let mut streams: BTreeMap<u64, (u64, Vec<u64>)> = BTreeMap::new();
    let mut packets = 0u64;
    let mut note = |packet: Packet<'_>| {
        let (before, seen) = streams.entry(packet.stream.instance).or_default();
        assert_eq!(*before, packet.events_before, "nothing vanished between two packets");
        *before = packet.events_after;
        let numbers = numbers(&packet);
        assert_eq!(numbers.len() as u64, packet.events_after - packet.events_before);
        seen.extend(numbers);
        packets += 1;
    };
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (running, stopped) = (&running, &stopped);
            scope.spawn(move || {
                for n in 0..rounds {
                    trace_busy(thread * rounds + n);
                }
                running.fetch_sub(1, Ordering::Relaxed);
                while !stopped.load(Ordering::Relaxed) {
                    thread::yield_now();
                }
            });
        }
        while running.load(Ordering::Relaxed) > 0 {
            channel.flush(u64::MAX);
            channel.drain(&mut note);
            channel.maintain().expect("memory");
        }
        stopped.store(true, Ordering::Relaxed);
    });
    Subscription::end_all(vec![subscription]);
    channel.finish(&mut note).expect("no subscriber is left");
    let event = &channel.account().events[0];
    assert_eq!(event.fired, THREADS * rounds);
    assert_eq!(event.fired, event.recorded + event.total_lost(), "{event:?}");
    let mut all: Vec<u64> = Vec::new();
    for (instance, (_, seen)) in streams {
        for thread in 0..THREADS {
            let own = seen.iter().filter(|n| *n / rounds == thread);
            assert!(own.is_sorted(), "stream {instance} has the thread's events in order");
        }
        all.extend(seen);
    }
    all.sort_unstable();
    assert!(all.windows(2).all(|pair| pair[0] < pair[1]), "no event is there twice");
    assert_eq!(all.len() as u64, event.recorded, "what was recorded arrived");
    assert!(packets > 100, "the packets were closed early, {packets} times");
    channel.close();
}

/// Rings of ended threads are prepared for reuse, which closes their packets, while another thread also closes packets.
#[test]
fn concurrent_maintenance_and_flush_close_each_packet_once() {
    own_process!();
    const EACH: u64 = 5;
    let threads = rounds() / 400;
    let (channel, subscription) = open("flush:passing", Channel::discard(1 << 14).packets(8).spares(2).max_rings(2));
    let stopped = AtomicBool::new(false);
    let mut seen = Vec::new();
    thread::scope(|scope| {
        scope.spawn(|| {
            while !stopped.load(Ordering::Relaxed) {
                channel.maintain().expect("memory");
            }
        });
        let drained = scope.spawn(|| {
            let mut seen = Vec::new();
            while !stopped.load(Ordering::Relaxed) {
                channel.flush(u64::MAX);
                channel.drain(|packet| seen.extend(numbers(&packet)));
            }
            seen
        });
        for thread in 0..threads {
            scope.spawn(move || (0..EACH).for_each(|n| trace_passing(thread * EACH + n))).join().expect("no panic");
        }
        stopped.store(true, Ordering::Relaxed);
        seen = drained.join().expect("no panic");
    });
    Subscription::end_all(vec![subscription]);
    channel.finish(|packet| seen.extend(numbers(&packet))).expect("no subscriber is left");
    let event = &channel.account().events[0];
    assert_eq!(event.fired, threads * EACH);
    assert_eq!(event.fired, event.recorded + event.total_lost(), "{event:?}");
    seen.sort_unstable();
    assert!(seen.windows(2).all(|pair| pair[0] < pair[1]), "no event is there twice");
    assert_eq!(seen.len() as u64, event.recorded, "what was recorded arrived");
    channel.close();
}

/// Almost empty packets do not fill the ring of a thread without a running consumer.
#[test]
fn packets_stay_open_in_a_ring_that_is_not_drained() {
    own_process!();
    let (channel, subscription) = open("flush:idle", Channel::discard(1 << 14).packets(8));
    let closed = |n| {
        trace_idle(n);
        channel.flush_drained(u64::MAX)
    };
    assert!((0..4).all(closed), "while less than half of the ring waits");
    assert!(!(4..200).any(closed), "half of it waits, the rest is for full packets");
    let mut packets = Vec::new();
    channel.drain(|packet| packets.push(numbers(&packet)));
    assert_eq!(packets.iter().map(Vec::len).collect::<Vec<_>>()[..4], [1; 4]);
    assert!(channel.flush_drained(u64::MAX), "closed now");
    channel.drain(|packet| packets.push(numbers(&packet)));
    Subscription::end_all(vec![subscription]);
    channel.finish(|packet| packets.push(numbers(&packet))).expect("no subscriber is left");
    assert!(packets.concat().into_iter().eq(0..200));
    channel.close();
}
