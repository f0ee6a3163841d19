//! Latencies: matched, lost and reused keys, across threads.

use crate::{Random, in_threads, seed};
use std::sync::mpsc::channel;
use std::time::Duration;
use tracepoint_probes::{GroupKey, Latency, MAX_IN_FLIGHT};

tracepoint::define_trace! {
    provider = "latency";

    begin(id: u64) { id: u64 = id }
    end(id: u64, status: u32) { id: u64 = id, status: u32 = status }
    exact_begin(id: u64) { id: u64 = id }
    exact_end(id: u64) { id: u64 = id }
    left_begin(id: u64) { id: u64 = id }
    left_end(id: u64) { id: u64 = id }
    busy_begin(id: u64) { id: u64 = id }
    busy_end(id: u64) { id: u64 = id }
    work_begin(n: u64) { n: u64 = n }
    work_end(n: u64) { n: u64 = n }
    full_begin(id: u64) { id: u64 = id }
    full_end(id: u64) { id: u64 = id }
    tick(id: u64) { id: u64 = id }
    span step(n: u64) { n }
}

#[test]
fn an_operation_lasts_from_its_begin_to_its_end() {
    let latency = Latency::between("latency:begin", "latency:end", Some("id"), &["status"]).unwrap();
    let (to_end, ends) = channel();
    let thread = std::thread::spawn(move || {
        for id in ends {
            tracepoint::trace!(end(id, 200 + (id % 2) as u32));
        }
    });
    for id in 0..6 {
        tracepoint::trace!(begin(id));
    }
    std::thread::sleep(Duration::from_millis(20));
    tracepoint::trace!(begin(5)); // again
    (0..6).for_each(|id| to_end.send(id).unwrap());
    to_end.send(77).unwrap(); // never began
    to_end.send(5).unwrap(); // ended already
    drop(to_end);
    thread.join().unwrap();
    tracepoint::trace!(begin(9)); // never ends
    let (durations, operations) = latency.snapshot();
    let groups: Vec<_> = durations.groups.iter().map(|row| (row.keys[0].clone(), row.value.count())).collect();
    assert_eq!(groups, [(GroupKey::Unsigned(200), 3), (GroupKey::Unsigned(201), 3)]);
    let min = durations.groups[0].value.min().unwrap();
    assert!(min >= 0.98 * 20e6, "{min} ns from begin to end, with 20 ms of sleep between them");
    assert!(durations.groups[1].value.min().unwrap() < durations.groups[1].value.max().unwrap(), "5 began again");
    assert_eq!((operations.begun, operations.replaced, operations.unmatched), (8, 1, 2));
    assert_eq!((operations.in_flight, operations.no_room), (1, 0));
}

#[test]
fn the_accounts_of_crossing_threads_balance() {
    let latency = Latency::between("latency:busy_begin", "latency:busy_end", Some("id"), &[]).unwrap();
    let seed = seed::or(3);
    // Threads begin and end each other's operations with few ids, so that they compete for few ways.
    in_threads(6, |thread| {
        let mut random = Random(seed + thread);
        for _ in 0..30_000 {
            let id = random.next() % 16;
            if random.next().is_multiple_of(2) {
                tracepoint::trace!(busy_begin(id));
            } else {
                tracepoint::trace!(busy_end(id));
            }
        }
    });
    let (durations, operations) = latency.snapshot();
    let ended = durations.all.unwrap().count();
    assert!(ended > 10_000, "{ended}");
    assert_eq!(
        operations.begun,
        ended + operations.replaced + operations.no_room + operations.in_flight,
        "{operations:?}"
    );
    assert!(operations.in_flight <= 6 * 16, "{operations:?}");
}

/// Each thread knows the fate of its operations, because no other thread uses their keys.
#[test]
fn the_numbers_of_eight_threads_are_exact() {
    const ROUNDS: u64 = 20_000;
    let latency = Latency::between("latency:exact_begin", "latency:exact_end", Some("id"), &[]).unwrap();
    in_threads(8, |thread| {
        for round in 0..ROUNDS {
            // Keys are reused all the time, and one in a thousand operations never ends.
            let id = thread << 32 | (round % 7);
            let lost = thread << 32 | 1 << 31 | round;
            tracepoint::trace!(exact_begin(id));
            if round % 5 == 0 {
                tracepoint::trace!(exact_begin(id));
            }
            if round % 1000 == 0 {
                tracepoint::trace!(exact_begin(lost));
            }
            tracepoint::trace!(exact_end(id));
            if round % 4 == 0 {
                tracepoint::trace!(exact_end(id));
            }
        }
    });
    let (durations, operations) = latency.snapshot();
    let (rounds, lost) = (8 * ROUNDS, 8 * ROUNDS / 1000);
    assert_eq!(durations.all.unwrap().count(), rounds);
    assert_eq!((operations.begun, operations.replaced), (rounds + rounds / 5 + lost, rounds / 5));
    assert_eq!((operations.in_flight, operations.no_room, operations.unmatched), (lost, 0, rounds / 4));
}

/// Operations of an ended thread can be ended by other threads, and by the next thread with the same index.
#[test]
fn operations_outlive_their_threads() {
    let latency = Latency::between("latency:left_begin", "latency:left_end", Some("id"), &[]).unwrap();
    for id in 0..100 {
        std::thread::spawn(move || {
            tracepoint::trace!(left_begin(id));
            tracepoint::trace!(left_begin(1000 + id));
            (id > 0).then(|| tracepoint::trace!(left_end(id - 1)));
        })
        .join()
        .unwrap();
    }
    let (durations, operations) = latency.snapshot();
    assert_eq!((durations.all.unwrap().count(), operations.in_flight, operations.unmatched), (99, 101, 0));
    (0..100).for_each(|id| tracepoint::trace!(left_end(1000 + id)));
    let (durations, operations) = latency.snapshot();
    assert_eq!((durations.all.unwrap().count(), operations.in_flight, operations.begun), (199, 1, 200));
}

#[test]
fn without_a_key_the_thread_is_the_key() {
    let latency = Latency::between("latency:work_begin", "latency:work_end", None, &[]).unwrap();
    in_threads(20, |_| {
        for n in 0..500 {
            tracepoint::trace!(work_begin(n));
            tracepoint::trace!(work_end(n));
        }
    });
    let (durations, operations) = latency.snapshot();
    assert_eq!(durations.all.unwrap().count(), 10_000);
    assert_eq!((operations.begun, operations.unmatched, operations.in_flight), (10_000, 0, 0));
}

#[test]
fn operations_beyond_the_table_are_counted() {
    let latency = Latency::between("latency:full_begin", "latency:full_end", Some("id"), &[]).unwrap();
    let all = 2 * MAX_IN_FLIGHT as u64;
    (0..all).for_each(|id| tracepoint::trace!(full_begin(id)));
    let (_, operations) = latency.snapshot();
    assert_eq!((operations.begun, operations.in_flight + operations.no_room), (all, all));
    assert!(operations.in_flight > all / 4, "{operations:?}");
    (0..all).for_each(|id| tracepoint::trace!(full_end(id)));
    let (durations, ended) = latency.snapshot();
    assert_eq!((durations.all.unwrap().count(), ended.in_flight), (operations.in_flight, 0));
    assert_eq!(ended.unmatched, operations.no_room);
}

#[test]
fn an_event_can_end_one_operation_and_begin_the_next() {
    let latency = Latency::between("latency:tick", "latency:tick", Some("id"), &[]).unwrap();
    (0..10).for_each(|n| tracepoint::trace!(tick(n % 2)));
    let (durations, operations) = latency.snapshot();
    assert_eq!((durations.all.unwrap().count(), operations.begun), (8, 10));
    assert_eq!((operations.unmatched, operations.in_flight, operations.replaced), (2, 2, 0));
}

#[test]
fn a_span_has_a_latency_by_its_name() {
    let latency = Latency::of_span("latency:step").unwrap();
    {
        let _outer = tracepoint::span!(step(1));
        drop(tracepoint::span!(step(2)));
    }
    let (durations, operations) = latency.snapshot();
    assert_eq!((durations.all.unwrap().count(), operations.begun, operations.in_flight), (2, 2, 0));
    assert_eq!((operations.unmatched, operations.replaced), (0, 0));
}
