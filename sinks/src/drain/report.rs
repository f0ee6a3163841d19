//! The report of a sink.

use crate::account::Account;
use crate::error::SinkError;

/// A sink of a [`Drain`](super::Drain), for as long as the drain has it. No two sinks of a drain have the same id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SinkId(pub(super) u64);

/// What one sink has taken.
#[derive(Debug)]
#[non_exhaustive]
pub struct SinkReport {
    /// Which sink of its drain it is.
    pub id: SinkId,
    /// The name of the sink.
    pub name: String,
    /// Bytes that it took.
    pub bytes: u64,
    /// Packets that it took.
    pub packets: u64,
    /// Packets that it did not take.
    pub refused: u64,
    /// The account as this sink sees it.
    pub account: Account,
    /// The first error; `None` if there was none.
    pub error: Option<SinkError>,
}
