//! Computes a sender's statistics from its queue.

use super::queue::Queue;
use crate::stream_stats::{Sender, StreamStats};
use std::time::{Duration, Instant};
use tracepoint_ring::clock;

impl Sender for Queue {
    fn stats(&self) -> StreamStats {
        let mut queue = self.lock();
        let mut stats = queue.stats.clone();
        (stats.rate, stats.waiting) = (queue.rate.at(Instant::now()), queue.bytes as u64);
        stats.lag = queue.waiting.as_ref().map(|waiting| {
            let oldest = waiting.values().min();
            oldest.map_or(Duration::ZERO, |end| Duration::from_nanos(clock::now().saturating_sub(*end)))
        });
        let stored = queue.deliveries.stored();
        stats.acknowledged = stored.map(|(stream, events)| ((stream.class, stream.instance), events)).collect();
        stats.unacknowledged = queue.deliveries.underway();
        stats.lost = queue.deliveries.lost();
        stats
    }
}
