//! Reads the statistics of a sender.

use super::queue::Queue;
use super::stats::StreamStats;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tracepoint_ring::clock;

/// Reads the statistics of a sender, also while a session has it.
#[derive(Clone, Debug)]
pub struct StreamWatch {
    pub(super) queue: Arc<Queue>,
    pub(super) destination: String,
}

impl StreamWatch {
    /// The address of the peer.
    pub fn destination(&self) -> &str {
        &self.destination
    }

    /// The statistics so far.
    pub fn stats(&self) -> StreamStats {
        let mut queue = self.queue.lock();
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
