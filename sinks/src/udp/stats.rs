//! Statistics of a server while it runs.

use super::queue::{PacketQueue, Serving};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Statistics of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct UdpStats {
    /// Sessions that were opened.
    pub sessions: u64,
    /// Messages sent, including retransmissions.
    pub messages: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Events sent in the legacy layout.
    pub legacy_events: u64,
    /// Events sent in batches.
    pub batch_events: u64,
    /// Events that a client of the batch layout has acknowledged in the present or the last session.
    pub acknowledged: u64,
    /// Datagrams received.
    pub received: u64,
    /// Those among them that were no valid command, or not in this state.
    pub ignored: u64,
    /// Commands that were refused: by their address, or because the trace had ended.
    pub refused: u64,
    /// Whether a client is being served.
    pub serving: bool,
    /// Bytes of events that wait for a client.
    pub waiting: u64,
    /// Events that were lost in the server.
    pub lost: u64,
}

/// Reads the statistics of a server, also while a session has it.
#[derive(Clone, Debug)]
pub struct UdpWatch {
    queue: Arc<PacketQueue>,
    counters: Arc<Counters>,
}

impl UdpWatch {
    pub(super) fn new(queue: &Arc<PacketQueue>, counters: &Arc<Counters>) -> Self {
        Self { queue: Arc::clone(queue), counters: Arc::clone(counters) }
    }

    /// The statistics so far.
    pub fn stats(&self) -> UdpStats {
        let mut stats = self.counters.read();
        stats.waiting = self.queue.waiting() as u64;
        let queue = self.queue.lock();
        stats.lost = queue.losses().total();
        stats.serving = queue.serving != Serving::NoClient;
        stats
    }
}

/// Independent counters. Relaxed: no other memory is ordered by them.
#[derive(Debug, Default)]
pub(super) struct Counters {
    sessions: AtomicU64,
    messages: AtomicU64,
    bytes: AtomicU64,
    legacy: AtomicU64,
    batch: AtomicU64,
    acknowledged: AtomicU64,
    received: AtomicU64,
    ignored: AtomicU64,
    refused: AtomicU64,
}

impl Counters {
    pub(super) fn session(&self) {
        self.sessions.fetch_add(1, Ordering::Relaxed);
        self.acknowledged.store(0, Ordering::Relaxed);
    }

    pub(super) fn sent(&self, bytes: usize) {
        self.messages.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(super) fn legacy(&self, events: u64) {
        self.legacy.fetch_add(events, Ordering::Relaxed);
    }

    pub(super) fn batch(&self, events: u64) {
        self.batch.fetch_add(events, Ordering::Relaxed);
    }

    pub(super) fn acknowledged(&self, events: u64) {
        self.acknowledged.fetch_max(events, Ordering::Relaxed);
    }

    pub(super) fn received(&self) {
        self.received.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn ignored(&self) {
        self.ignored.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn refused(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn read(&self) -> UdpStats {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        UdpStats {
            sessions: read(&self.sessions),
            messages: read(&self.messages),
            bytes: read(&self.bytes),
            legacy_events: read(&self.legacy),
            batch_events: read(&self.batch),
            acknowledged: read(&self.acknowledged),
            received: read(&self.received),
            ignored: read(&self.ignored),
            refused: read(&self.refused),
            serving: false,
            waiting: 0,
            lost: 0,
        }
    }
}
