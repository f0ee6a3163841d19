//! Statistics of a UDP trace server.

use std::fmt;
use std::sync::Arc;

/// Statistics of a server so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct UdpStats {
    /// Sessions opened.
    pub sessions: u64,
    /// Messages sent, including retransmissions.
    pub messages: u64,
    /// Bytes of these messages.
    pub bytes: u64,
    /// Events sent in the legacy layout.
    pub legacy_events: u64,
    /// Events sent in batches.
    pub batch_events: u64,
    /// Events acknowledged by the client of the batch layout in the current or the last session.
    pub acknowledged: u64,
    /// Events sent in batches of ended sessions without an acknowledgement of them or of the session's end, for example because the client was
    /// killed. They may have arrived. The next client counts them as sent to another one. For the legacy layout, the number of received events is
    /// unknown.
    pub unacknowledged: u64,
    /// Datagrams received.
    pub received: u64,
    /// Datagrams received that were no valid command, or not valid in the current state.
    pub ignored: u64,
    /// Commands refused because of their address, or because the trace had ended.
    pub refused: u64,
    /// True while a client is served.
    pub serving: bool,
    /// Bytes of events that wait for a client.
    pub waiting: u64,
    /// Events lost in the server.
    pub lost: u64,
}

/// Source of a server's statistics.
pub(crate) trait Server: fmt::Debug + Send + Sync {
    /// Returns the statistics so far.
    fn stats(&self) -> UdpStats;
}

/// Reads the statistics of a server, even while a session uses it.
#[derive(Clone, Debug)]
pub struct UdpWatch(Arc<dyn Server>);

impl UdpWatch {
    pub(crate) fn new(server: Arc<dyn Server>) -> Self {
        Self(server)
    }

    /// Returns the statistics so far.
    pub fn stats(&self) -> UdpStats {
        self.0.stats()
    }
}
