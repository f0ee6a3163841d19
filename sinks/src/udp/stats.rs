//! What a server has done, for whoever wants to know while it runs.

use super::queue::{PacketQueue, Serving};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What a server has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct UdpStats {
    /// Sessions that were opened.
    pub sessions: u64,
    /// Messages sent, repetitions included.
    pub messages: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Events sent in the stock layout.
    pub legacy_events: u64,
    /// Events sent in batches.
    pub batch_events: u64,
    /// Events that the clients of batches have acknowledged in the present session, or did in the last one.
    pub acknowledged: u64,
    /// Datagrams that came.
    pub received: u64,
    /// Those among them that were no command, or none for this state.
    pub ignored: u64,
    /// Commands of addresses that may not have what they asked for, or that came after the trace had ended.
    pub refused: u64,
    /// Whether a client is being served.
    pub serving: bool,
    /// Events that wait for a client, in bytes.
    pub waiting: u64,
    /// Events that were lost in the server.
    pub lost: u64,
}

/// Tells how a server fares.
#[derive(Clone, Debug)]
pub struct UdpWatch {
    queue: Arc<PacketQueue>,
    counters: Arc<Counters>,
}

impl UdpWatch {
    pub(super) fn new(queue: &Arc<PacketQueue>, counters: &Arc<Counters>) -> Self {
        Self { queue: Arc::clone(queue), counters: Arc::clone(counters) }
    }

    /// What it has done so far.
    pub fn stats(&self) -> UdpStats {
        let mut stats = self.counters.read();
        stats.waiting = self.queue.waiting() as u64;
        let state = self.queue.lock();
        stats.lost = state.losses().total();
        stats.serving = state.serving != Serving::Nobody;
        stats
    }
}

/// All counters, each its own: Relaxed, for nothing is read by them but numbers.
#[derive(Debug, Default)]
pub(super) struct Counters {
    sessions: AtomicU64,
    messages: AtomicU64,
    bytes: AtomicU64,
    stock: AtomicU64,
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

    pub(super) fn stock(&self, events: u64) {
        self.stock.fetch_add(events, Ordering::Relaxed);
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
            legacy_events: read(&self.stock),
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
