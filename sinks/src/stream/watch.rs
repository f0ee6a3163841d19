//! Reads the statistics of a sender.

use super::queue::Queue;
use super::stats::StreamStats;
use std::sync::Arc;

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
        let queue = self.queue.lock();
        let mut stats = queue.stats.clone();
        stats.waiting = queue.bytes as u64;
        for lost in queue.lost.values() {
            for (reason, events) in lost {
                *stats.lost.entry(reason.name()).or_default() += events;
            }
        }
        stats
    }
}
