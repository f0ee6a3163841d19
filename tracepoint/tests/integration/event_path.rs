//! The whole path of an event through the core, from its declaration to the bytes of a packet. Read this after
//! `ARCHITECTURE.md`.
#![forbid(unsafe_code)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tracepoint::marker::{Subscriber, Subscription};
use tracepoint_ring::channel::{AnonymousMemory, Channel, OpenChannel, PACKET_MAGIC};

struct Task {
    pid: i32,
    state: i64,
    comm: String,
}

// 1. Declaration: a typed hook with a field block, and one without.
tracepoint::define_trace! {
    provider = "sched";

    /// The scheduler leaves `prev` and runs `next`.
    #[level(Debug)]
    sched_switch(prev: &Task, next: &Task) {
        prev_pid: i32 = prev.pid,
        next_pid: i32 = next.pid,
        next_comm: str = &next.comm,
    }

    sched_migrate(task: &Task, dest_cpu: u32);
}

/// Reads a little-endian number from a packet.
fn number(bytes: &[u8], offset: usize) -> u64 {
    u64::from_le_bytes(bytes[offset..offset + 8].try_into().expect("eight bytes"))
}

#[test]
fn a_typed_call_becomes_the_bytes_of_a_packet() {
    own_process!();
    let prev = Task { pid: 1, state: 3, comm: "init".to_owned() };
    let next = Task { pid: 2, state: 0, comm: "sh".to_owned() };

    // 2. Off: the tracepoint is listed before its first hit, and its sites compute nothing.
    let tracepoint = tracepoint::find("sched:sched_switch").expect("the linker gathered it");
    assert!(!tracepoint.is_on());
    let unused = || -> &Task { unreachable!("the tracepoint is off") };
    tracepoint::trace!(sched_switch(&prev, unused()));

    // 3. A probe gets the typed arguments; this one records some of them with a hand-written marker.
    let hits = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&hits);
    let probe = register_trace_sched_switch(move |prev, next| {
        count.fetch_add(1, Ordering::Relaxed);
        tracepoint::trace_mark!(
            provider = "kernel";
            sched_switch,
            "prev_pid %d next_pid %d prev_state %ld",
            prev.pid,
            next.pid,
            prev.state
        );
    })
    .expect("registers");
    assert!(trace_sched_switch_enabled());

    // 4. A channel subscribes to both markers: the one derived from the field block, and the one by hand.
    let channel =
        OpenChannel::open(Channel::discard(1 << 16), [0xAB; 16], 5, 2, Box::new(AnonymousMemory)).expect("memory");
    let subscriptions: Vec<_> = ["sched:sched_switch", "kernel:sched_switch"]
        .into_iter()
        .map(|name| {
            let marker = tracepoint::runtime::markers()
                .find(|marker| marker.full_name() == name)
                .expect("the linker gathered it");
            marker
                .subscribe(Subscriber::record(Arc::clone(&channel), channel.add_event().expect("an id")))
                .expect("switches")
        })
        .collect();

    // 5. Two events: each is evaluated once, recorded, and passed to the probe, whose marker records another event.
    tracepoint::trace!(sched_switch(&prev, &next));
    trace_sched_switch(&next, &prev);

    // 6. Off again: from here on no probe runs and no record is written.
    Subscription::end_all(subscriptions);
    unregister_trace_sched_switch(probe);
    trace_sched_switch(&prev, &next);
    assert!(!tracepoint.is_on());
    assert_eq!(hits.load(Ordering::Relaxed), 2);

    // 7. The packet: CTF from its first byte, a header word and packed fields for each record.
    let mut packets = Vec::new();
    channel.finish(|packet| packets.push(packet.bytes.to_vec())).expect("no subscriber is left");
    channel.close();
    let [packet, last] = packets.as_slice() else { panic!("one packet, and the last one with the final counts") };
    assert_eq!(packet[..4], PACKET_MAGIC.to_le_bytes());
    assert_eq!(packet[4..20], [0xAB; 16], "the trace's uuid");
    assert_eq!(packet[20..24], 5u32.to_le_bytes(), "the stream class");
    let (begin, end, content) = (number(packet, 32), number(packet, 40), number(packet, 48));
    assert_eq!(content, packet.len() as u64 * 8);
    assert_eq!(number(packet, 64), 1, "the stream's first packet has number 0 and is empty");
    let mut records = &packet[96..];
    let mut times = Vec::new();
    for (prev, next) in [(&prev, &next), (&next, &prev)] {
        let derived_size = 8 + 4 + 4 + next.comm.len() + 1;
        let derived = &records[..derived_size];
        assert_eq!(number(derived, 0) & 0xFFFF, 0, "the id of the derived event");
        assert_eq!(derived[8..12], prev.pid.to_le_bytes());
        assert_eq!(derived[12..16], next.pid.to_le_bytes());
        assert_eq!(&derived[16..], [next.comm.as_bytes(), &[0]].concat());
        let by_hand = &records[derived_size..derived_size + 8 + 4 + 4 + 8];
        assert_eq!(number(by_hand, 0) & 0xFFFF, 1, "the id of the event by hand");
        assert_eq!(by_hand[16..24], prev.state.to_le_bytes());
        times.extend([number(derived, 0) >> 16, number(by_hand, 0) >> 16]);
        records = &records[derived_size + by_hand.len()..];
    }
    assert!(records.is_empty());
    assert!(times.is_sorted() && times[0] == begin & 0xFFFF_FFFF_FFFF && times[3] == end & 0xFFFF_FFFF_FFFF);
    assert_eq!((last.len(), number(last, 88)), (96, 4), "no records, and four before it");

    // 8. The account: two independent counters agree that every event that fired was recorded.
    let account = channel.account();
    for event in &account.events {
        assert_eq!((event.fired, event.recorded, event.total_lost()), (2, 2, 0));
    }
    assert_eq!(account.streams[0].recorded, 4);
}
