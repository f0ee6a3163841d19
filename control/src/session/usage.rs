//! What a session costs its process.

use std::collections::BTreeMap;
use std::time::Duration;

/// What it has cost since it began.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    /// Bytes of packets, as they stand in the rings.
    pub(crate) bytes: u64,
    /// The processor time of the drain thread.
    pub(crate) drain: Duration,
    /// Of each event.
    pub(crate) events: BTreeMap<String, EventUsage>,
}

/// How often an event came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct EventUsage {
    pub(crate) fired: u64,
    pub(crate) recorded: u64,
}
