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
    /// Whether it stores what it takes, itself or at a peer that acknowledges it.
    pub stores: bool,
    /// The first error; `None` if there was none.
    pub error: Option<SinkError>,
}

impl SinkReport {
    /// The report that says what of a recording is kept: that of the sink that stores most of the events, and of equal ones the first. Sinks that do not
    /// store what they take say it only where there are no others.
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
        // A server does not know what has arrived.
        assert_eq!(of_most(&[report(0, false, 100, 0), report(1, true, 40, 0)]), Some(1));
        assert_eq!(of_most(&[report(0, false, 100, 0)]), Some(0));
    }
}
