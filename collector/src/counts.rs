//! Counters of a collector, for its status and metrics.

use serde::Serialize;

/// Counts since the collector started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Counts {
    /// Accepted connections.
    pub connections: u64,
    /// Connections refused because there were too many.
    pub refused: u64,
    /// Connections closed because of a malformed, oversized or slow message.
    pub failed: u64,
    /// Sessions and streams refused because their sender or its address had used its share.
    pub refused_streams: u64,
    /// Sessions opened.
    pub sessions: u64,
    /// Packets received.
    pub packets: u64,
    /// Packets written to a file.
    pub stored: u64,
    /// Bytes of these packets, including padding.
    pub stored_bytes: u64,
    /// Packets dropped because they arrived after they were given up, or after their successors; for stock senders also duplicates.
    pub late: u64,
    /// Packets and datagrams received more than once; the first copy is stored, so nothing is missing.
    pub duplicates: u64,
    /// Packets that were announced and never arrived.
    pub missing: u64,
    /// Packets damaged in transit.
    pub damaged: u64,
    /// Datagrams ignored because they are malformed or name no session.
    pub ignored: u64,
    /// Packets that could not be written.
    pub unwritten: u64,
    /// Packets that this collector has published and the broker has stored.
    pub published: u64,
    /// Packets stored here and not published yet.
    pub unpublished: u64,
    /// Packets never published: removed before, or larger than the broker accepts.
    pub unpublishable: u64,
    /// Bytes sent to viewers.
    pub viewed_bytes: u64,
}
