//! The report of a sink.

use crate::account::Account;
use crate::error::SinkError;

/// Identifies a sink of a [`Drain`](super::Drain). Ids are never reused by a drain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SinkId(pub(super) u64);

/// Results of one sink.
#[derive(Debug)]
#[non_exhaustive]
pub struct SinkReport {
    /// The sink's id in its drain.
    pub id: SinkId,
    /// The name of the sink.
    pub name: String,
    /// Bytes that it took.
    pub bytes: u64,
    /// Packets that it took.
    pub packets: u64,
    /// Packets that it did not take.
    pub refused: u64,
    /// The account from the point of view of this sink.
    pub account: Account,
    /// True if it stores packets, itself or at a peer that acknowledges them.
    pub stores: bool,
    /// The first error; `None` if there was none.
    pub error: Option<SinkError>,
}

impl SinkReport {
    /// Returns the report that best describes the stored part of a recording: that of the sink that stores most of the events, the first of equal
    /// ones. Sinks that store no packets count only if there are no others.
    pub fn of_most(reports: &[Self]) -> Option<&Self> {
        let stored = |report: &Self| {
            let streams = report.account.channels.iter().flat_map(|channel| &channel.streams);
            (report.stores, streams.map(|stream| stream.written.saturating_sub(stream.before.written)).sum::<u64>())
        };
        reports.iter().rev().max_by_key(|report| stored(report))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::{ChannelAccount, StreamAccount};

    fn report(number: u64, stores: bool, written: u64, before: u64) -> SinkReport {
        let mut account = Account::new([0; 16], "", 0);
        let (mut channel, mut stream) = (ChannelAccount::default(), StreamAccount::default());
        (stream.written, stream.before.written) = (written, before);
        channel.streams.push(stream);
        account.channels.push(channel);
        let (id, name) = (SinkId(number), String::new());
        SinkReport { id, name, bytes: 0, packets: 0, refused: 0, account, stores, error: None }
    }

    #[test]
    fn the_sink_that_stores_most_says_what_was_recorded() {
        let of_most = |reports: &[SinkReport]| SinkReport::of_most(reports).map(|report| report.id.0);
        assert_eq!(of_most(&[]), None);
        // A peer that has lost some, and a directory; equal ones; one that was added late.
        assert_eq!(of_most(&[report(0, true, 40, 0), report(1, true, 100, 0)]), Some(1));
        assert_eq!(of_most(&[report(0, true, 100, 0), report(1, true, 100, 0)]), Some(0));
        assert_eq!(of_most(&[report(0, true, 60, 0), report(1, true, 100, 70)]), Some(0));
        // A server does not know which events have arrived.
        assert_eq!(of_most(&[report(0, false, 100, 0), report(1, true, 40, 0)]), Some(1));
        assert_eq!(of_most(&[report(0, false, 100, 0)]), Some(0));
    }
}
