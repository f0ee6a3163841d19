//! The promises to viewers follow the closing of packets.

use super::collector::{Collector, Files};
use super::{LONG, config, options};
use crate::common::{Outcome, Recording, alone};
use std::thread;
use std::time::{Duration, Instant};
use tracepoint_ring::channel::HEADER_SIZE;
use tracepoint_ring::clock;
use tracepoint_sinks::stream::{StreamSink, flush_age};

tracepoint::define_trace! {
    provider = "flushed";
    pub told(n: u64) { n: u64 = n }
}

#[test]
fn no_time_is_promised_before_the_packets_are_closed() -> Outcome {
    let _alone = alone();
    let collector = Collector::start();
    let mut recording = Recording::start(config(), vec![Box::new(StreamSink::new(options(&collector))?)])?;
    let age = recording.drain.flush_age();
    assert_eq!(age, flush_age(Duration::from_millis(20)));
    recording.drain.flush(age);
    tracepoint::trace!(told(1));
    let event = clock::now();
    // Rounds that close nothing: for any number of them, the promise does not pass an open packet.
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(1) {
        recording.drain.drain();
        thread::sleep(Duration::from_millis(5));
    }
    assert!(collector.files().syncs.last().is_none_or(|sync| sync.time < event), "its packet is open");
    while collector.files().syncs.last().is_none_or(|sync| sync.time <= event) {
        assert!(began.elapsed() < LONG);
        recording.drain.flush(age);
        recording.drain.drain();
        thread::sleep(Duration::from_millis(5));
    }
    let has_event = |files: &Files| {
        let mut packets = files.streams.values().flat_map(|stream| &stream.packets);
        packets.any(|(header, _)| header.content_bits > 8 * HEADER_SIZE as u64)
    };
    while !has_event(&collector.files()) {
        assert!(began.elapsed() < LONG, "it is sent with the time behind it");
        thread::sleep(Duration::from_millis(5));
    }
    let report = recording.finish().remove(0);
    assert!(report.error.is_none(), "{:?}", report.error);
    Ok(())
}
