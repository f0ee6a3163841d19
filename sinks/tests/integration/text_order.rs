//! Text is ordered by time over all streams, with losses at their time. With too little memory, late lines are counted.

use crate::common::{Outcome, Recording, Shared};
use std::sync::Mutex;
use std::thread;
use tracepoint_reader::text::Style;
use tracepoint_ring::channel::Channel;
use tracepoint_sinks::TextSink;

tracepoint::define_trace! {
    provider = "order";
    pub step(thread: u32, n: u64) { thread: u32 = thread, n: u64 = n }
}

const EVENTS: u64 = 1_000;

/// Returns the text of two threads that fire in turn and are drained in between, with a limit of `pending` bytes for waiting events.
fn record(pending: usize) -> Result<Vec<String>, Box<dyn std::error::Error>> {
    let out = Shared::default();
    let sink = TextSink::new(out.clone()).options(Style::Babeltrace.into()).pending(pending);
    let mut recording = Recording::start(Channel::discard(4 << 10).packets(8), vec![Box::new(sink)])?;
    let turn = Mutex::new(0u64);
    thread::scope(|scope| {
        for thread in 0..2u32 {
            let turn = &turn;
            scope.spawn(move || {
                let mut n = u64::from(thread);
                while n < EVENTS {
                    if let Some(mut turn) = turn.lock().ok().filter(|turn| **turn == n) {
                        tracepoint::trace!(step(thread, n));
                        *turn += 1;
                        n += 2;
                    }
                    thread::yield_now();
                }
            });
        }
        while turn.lock().is_ok_and(|turn| *turn < EVENTS) {
            recording.drain.drain();
        }
    });
    let reports = recording.finish();
    assert!(reports.iter().all(|report| report.error.is_none()), "{reports:?}");
    Ok(out.lines())
}

#[test]
fn streams_are_merged_by_time() -> Outcome {
    let lines = record(64 << 20)?;
    let events = lines.iter().filter(|line| line.contains("order:step")).count() as u64;
    let lost: u64 = lines
        .iter()
        .filter(|line| line.starts_with("[lost: "))
        .filter_map(|line| line.split(' ').nth(1)?.parse::<u64>().ok())
        .sum();
    assert_eq!(events + lost, EVENTS);
    assert!(!lines.iter().any(|line| line.contains("(+-") || line.starts_with("[late: ")), "all in order");

    // Without memory, the events of a packet are written as soon as the next packet arrives.
    let lines = record(1)?;
    let late = lines.last().filter(|line| line.starts_with("[late: ")).ok_or("no line about late events")?;
    assert!(lines.iter().any(|line| line.contains("(+-")), "{late}");
    Ok(())
}
