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
    /// Events sent in batches of sessions that are over, without an acknowledgement of them or of the session's end: the client was killed,
    /// say. They may have arrived. The next client counts them as sent to another one. What a client of the legacy layout receives is not known.
    pub unacknowledged: u64,
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
            serving: queue.serving != Serving::NoClient,
            waiting: queue.bytes as u64,
            lost: queue.losses().total(),
        }
    }
}

/// A counter. Relaxed: no other memory is ordered by it.
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

/// What [`UdpStats`] has, while the server counts. The counters are independent.
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
