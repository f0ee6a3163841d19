//! What a UDP trace server has done so far.

use std::fmt;
use std::sync::Arc;

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

/// A server, as far as its statistics are concerned.
pub(crate) trait Server: fmt::Debug + Send + Sync {
    /// The statistics so far.
    fn stats(&self) -> UdpStats;
}

/// Reads the statistics of a server, also while a session has it.
#[derive(Clone, Debug)]
pub struct UdpWatch(Arc<dyn Server>);

impl UdpWatch {
    pub(crate) fn new(server: Arc<dyn Server>) -> Self {
        Self(server)
    }

    /// The statistics so far.
    pub fn stats(&self) -> UdpStats {
        self.0.stats()
    }
}
