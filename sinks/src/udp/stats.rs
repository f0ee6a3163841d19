//! Statistics of a running server.

use super::queue::{PacketQueue, ServiceState};
use crate::udp_stats::{Server, UdpStats, UdpWatch};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Source of a server's statistics.
#[derive(Debug)]
struct StatsSource {
    queue: Arc<PacketQueue>,
    counters: Arc<Counters>,
}

/// Returns a handle that reads the statistics from this queue and these counters.
pub(super) fn watch(queue: &Arc<PacketQueue>, counters: &Arc<Counters>) -> UdpWatch {
    UdpWatch::new(Arc::new(StatsSource { queue: Arc::clone(queue), counters: Arc::clone(counters) }))
}

impl Server for StatsSource {
    fn stats(&self) -> UdpStats {
        let queue = self.queue.lock();
        UdpStats {
            sessions: self.counters.sessions.read(),
            messages: self.counters.messages.read(),
            bytes: self.counters.bytes.read(),
            legacy_events: self.counters.legacy.read(),
            batch_events: self.counters.batch.read(),
            acknowledged: self.counters.acknowledged.read(),
            unacknowledged: self.counters.unacknowledged.read(),
            received: self.counters.received.read(),
            ignored: self.counters.ignored.read(),
            refused: self.counters.refused.read(),
            serving: queue.serving != ServiceState::NoClient,
            waiting: queue.bytes as u64,
            lost: queue.losses().total(),
        }
    }
}

/// A counter. Relaxed: it orders no other memory.
#[derive(Debug, Default)]
pub(super) struct Counter(AtomicU64);

impl Counter {
    pub(super) fn add(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    fn read(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The counters behind [`UdpStats`]. They are independent of each other.
#[derive(Debug, Default)]
pub(super) struct Counters {
    sessions: Counter,
    messages: Counter,
    bytes: Counter,
    pub(super) legacy: Counter,
    pub(super) batch: Counter,
    acknowledged: Counter,
    pub(super) unacknowledged: Counter,
    pub(super) received: Counter,
    pub(super) ignored: Counter,
    pub(super) refused: Counter,
}

impl Counters {
    pub(super) fn session(&self) {
        self.sessions.add(1);
        self.acknowledged.0.store(0, Ordering::Relaxed);
    }

    pub(super) fn sent(&self, bytes: usize) {
        self.messages.add(1);
        self.bytes.add(bytes as u64);
    }

    pub(super) fn acknowledged(&self, events: u64) {
        self.acknowledged.0.fetch_max(events, Ordering::Relaxed);
    }
}
