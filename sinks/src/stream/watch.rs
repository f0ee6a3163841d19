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
        let state = self.queue.lock();
        let mut stats = state.stats.clone();
        stats.waiting = state.bytes as u64;
        for lost in state.lost.values() {
            for (reason, events) in lost {
                *stats.lost.entry(reason.name()).or_default() += events;
            }
        }
        stats
    }
}
