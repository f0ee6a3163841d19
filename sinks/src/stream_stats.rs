//! What a sender has done so far.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Why packets did not reach the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum LostPackets {
    /// They were under way when a connection ended, or not sent when the recording ended.
    Network,
    /// They could not be sent in time below a cap on the bandwidth.
    Bandwidth,
    /// They hold an event from before a time that was promised to viewers.
    Late,
    /// The collector had no room for their stream.
    Refused,
}

impl LostPackets {
    /// The reason in an account.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Network => "network",
            Self::Bandwidth => "bandwidth",
            Self::Late => "late",
            Self::Refused => "refused",
        }
    }
}

/// What a sender has done so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StreamStats {
    /// The peer that it is connected to, as it names itself; `None` while it is not connected.
    pub peer: Option<String>,
    /// Why it is not connected, if it is not.
    pub trouble: Option<String>,
    /// How often it has connected.
    pub connections: u64,
    /// Packets that were sent, and their bytes.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Bytes that were sent a second, in the last second.
    pub rate: u64,
    /// Bytes of packets that wait to be sent or to be acknowledged.
    pub waiting: u64,
    /// The age of the oldest of them: how far the peer is behind. Zero if none waits; `None` for times of another clock than this host's.
    pub lag: Option<Duration>,
    /// How far the clock of the collector is ahead of this host's, in nanoseconds; `None` while it is not known, and for `lttng-relayd`.
    pub clock: Option<i64>,
    /// Events of each stream, by class and instance, that the peer has acknowledged.
    pub acknowledged: BTreeMap<(u32, u64), u64>,
    /// Events that it has not acknowledged, and that are not lost.
    pub unacknowledged: u64,
    /// Events that were lost, by reason.
    pub lost: BTreeMap<&'static str, u64>,
}

/// A sender, as far as its statistics are concerned.
pub(crate) trait Sender: fmt::Debug + Send + Sync {
    /// The statistics so far.
    fn stats(&self) -> StreamStats;
}

/// Reads the statistics of a sender, also while a session has it.
#[derive(Clone, Debug)]
pub struct StreamWatch {
    sender: Arc<dyn Sender>,
    destination: String,
}

impl StreamWatch {
    pub(crate) fn new(sender: Arc<dyn Sender>, destination: String) -> Self {
        Self { sender, destination }
    }

    /// The address of the peer.
    pub fn destination(&self) -> &str {
        &self.destination
    }

    /// The statistics so far.
    pub fn stats(&self) -> StreamStats {
        self.sender.stats()
    }
}
