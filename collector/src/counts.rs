//! What the collector counts, for its status.

use serde::Serialize;

/// Counts since the collector began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Counts {
    /// Connections that were accepted.
    pub connections: u64,
    /// Connections that were refused, because there were too many.
    pub refused: u64,
    /// Connections that were ended, because what came was malformed, too large or too slow.
    pub failed: u64,
    /// Sessions and streams that were refused, because their sender or its address had its share.
    pub refused_streams: u64,
    /// Sessions that were opened.
    pub sessions: u64,
    /// Packets that came.
    pub packets: u64,
    /// Packets that are in a file.
    pub stored: u64,
    /// Bytes of these packets, with padding.
    pub stored_bytes: u64,
    /// Packets that came after they were given up, or after their successors, and were dropped; of stock senders also those that came twice.
    pub late: u64,
    /// Packets and datagrams that came again, though they were stored or are about to be. Nothing is missing for them.
    pub duplicates: u64,
    /// Packets that were announced and did not come.
    pub missing: u64,
    /// Packets that were damaged on their way.
    pub damaged: u64,
    /// Datagrams that were ignored: of no session, or malformed.
    pub ignored: u64,
    /// Packets that could not be written.
    pub unwritten: u64,
    /// Packets that a broker has stored, to which this collector publishes.
    pub published: u64,
    /// Packets that are stored here and not published yet.
    pub unpublished: u64,
    /// Packets that were not published: removed before, or larger than what the broker takes.
    pub unpublishable: u64,
    /// Bytes that were sent to viewers.
    pub viewed_bytes: u64,
}
