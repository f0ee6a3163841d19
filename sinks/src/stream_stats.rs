//! Statistics of a sender.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// The reason why packets did not reach the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum LostPackets {
    /// They were underway when a connection ended, or not sent when the recording ended.
    Network,
    /// They could not be sent in time below a bandwidth cap.
    Bandwidth,
    /// They contain an event from before a time promised to viewers.
    Late,
    /// The collector had no room for their stream.
    Refused,
}

impl LostPackets {
    /// Returns the reason's name in an account.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Network => "network",
            Self::Bandwidth => "bandwidth",
            Self::Late => "late",
            Self::Refused => "refused",
        }
    }
}

/// Statistics of a sender so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StreamStats {
    /// The name of the connected peer; `None` while it is not connected.
    pub peer: Option<String>,
    /// The reason why it is not connected.
    pub trouble: Option<String>,
    /// Number of connections so far.
    pub connections: u64,
    /// Packets sent.
    pub packets: u64,
    /// Bytes of these packets.
    pub bytes: u64,
    /// Bytes per second, over the last second.
    pub rate: u64,
    /// Bytes of packets that wait to be sent or acknowledged.
    pub waiting: u64,
    /// The age of the oldest of them, by which the peer lags behind. Zero if none waits; `None` if the trace does not use this host's clock.
    pub lag: Option<Duration>,
    /// How far the collector's clock is ahead of this host's, in nanoseconds; `None` while unknown, and for `lttng-relayd`.
    pub clock: Option<i64>,
    /// Acknowledged events of each stream, by class and instance.
    pub acknowledged: BTreeMap<(u32, u64), u64>,
    /// Events neither acknowledged nor lost.
    pub unacknowledged: u64,
    /// Lost events, by reason.
    pub lost: BTreeMap<&'static str, u64>,
}

/// Source of a sender's statistics.
pub(crate) trait Sender: fmt::Debug + Send + Sync {
    /// Returns the statistics so far.
    fn stats(&self) -> StreamStats;
}

/// Reads the statistics of a sender, even while a session uses it.
#[derive(Clone, Debug)]
pub struct StreamWatch {
    sender: Arc<dyn Sender>,
    destination: String,
}

impl StreamWatch {
    pub(crate) fn new(sender: Arc<dyn Sender>, destination: String) -> Self {
        Self { sender, destination }
    }

    /// Returns the address of the peer.
    pub fn destination(&self) -> &str {
        &self.destination
    }

    /// Returns the statistics so far.
    pub fn stats(&self) -> StreamStats {
        self.sender.stats()
    }
}
