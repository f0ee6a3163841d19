//! Text is written in order while the trace is recorded.

use crate::common::{Outcome, Recording, Shared};
use std::thread;
use std::time::Duration;
use tracepoint_reader::text::Style;
use tracepoint_ring::channel::Channel;
use tracepoint_sinks::TextSink;

tracepoint::define_trace! {
    provider = "live";
    pub step(thread: u32, n: u64) { thread: u32 = thread, n: u64 = n }
}

#[test]
fn lines_are_printed_while_recording() -> Outcome {
    let out = Shared::default();
    let sink = TextSink::new(out.clone()).options(Style::Babeltrace.into());
    let mut recording = Recording::start(Channel::discard(64 << 10), vec![Box::new(sink)])?;
    tracepoint::trace!(step(0, 1));
    thread::spawn(|| tracepoint::trace!(step(1, 2))).join().map_err(|_| "a thread")?;
    // Unless old packets are closed, the watermark is unknown.
    recording.drain.drain();
    assert_eq!(out.lines().len(), 0);
    while out.lines().len() < 2 {
        recording.drain.flush(Duration::from_millis(500));
        recording.drain.drain();
        thread::sleep(Duration::from_millis(20));
    }
    tracepoint::trace!(step(0, 3));
    recording.finish();
    let lines = out.lines();
    assert_eq!(lines.len(), 3, "{lines:#?}");
    assert!(!lines.iter().any(|line| line.contains("(+-")), "{lines:#?}");
    Ok(())
}
