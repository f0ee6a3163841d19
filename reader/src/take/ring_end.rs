//! The end of a ring: reconciles its counters with the taken packets, and makes a last packet for each stream.

use super::account_builder::AccountBuilder;
use super::journal::Journal;
use super::position::Position;
use super::reconcile::RingAccounting;
use super::walker::EventCount;
use crate::account::StreamAccount;
use crate::ring::{EventCounters, Ring, Side, StreamCounters};
use std::collections::BTreeMap;
use tracepoint_ring::channel::PacketHeader;

/// A stream after its last packet was taken.
#[derive(Debug)]
pub(crate) struct StreamEnd {
    side: Side,
    pub(crate) position: Position,
    pub(crate) counters: StreamCounters,
    /// Number of committed records.
    committed: u64,
    discarded: u64,
}

impl StreamEnd {
    /// A stream taken up to `position`. `open` is the number of records up to the end of its open packet, if there was one: the
    /// counter is ahead of it while a record is being written, which happens only in an open packet.
    pub(crate) fn new(side: Side, position: Position, counters: StreamCounters, open: Option<u64>) -> Self {
        let committed = open.unwrap_or(counters.records).max(position.records);
        let discarded = counters.discarded.max(position.discarded);
        Self { side, position, counters, committed, discarded }
    }

    fn check(&self, ring: &Ring, journal: &mut Journal) {
        let (path, committed, counters) = (ring.path().display(), self.committed, &self.counters);
        let ahead = counters.records.checked_sub(committed);
        if ahead.is_none_or(|ahead| ahead > 1) {
            journal.wrong(format!("{path}: it counts {} records, and {committed} are committed", counters.records));
        }
        let found = self.position.discarded;
        if found > counters.discarded {
            journal.wrong(format!("{path}: its packets report {found} losses, and its counter {}", counters.discarded));
        }
    }

    /// The header of the empty packet that ends the stream with its final counts, not before `earliest`; `None` if the stream was never
    /// used.
    pub(crate) fn last_packet(&self, ring: &Ring, earliest: u64) -> Option<PacketHeader> {
        if self.committed == 0 && self.discarded == 0 {
            return None;
        }
        Some(PacketHeader {
            sequence: self.position.sequence.max(self.counters.closed).saturating_add(1),
            discarded: self.discarded,
            events_before: self.committed,
            ..ring.empty_packet(self.side, self.position.end.max(earliest))
        })
    }

    /// Its line in the account, without the file.
    pub(crate) fn account(&self, ring: &Ring) -> StreamAccount {
        ring.stream_account(self.side, self.committed, self.discarded)
    }
}

/// A ring after its last packet was taken.
#[derive(Debug)]
pub(crate) struct RingEnd {
    pub(crate) streams: [StreamEnd; 2],
    /// Number of events that were committed but not yet counted as recorded.
    pub(crate) uncounted: u64,
}

impl RingEnd {
    /// Reconciles the counters of events, read before the packets, with the taken parts of the `streams`, and adds them to the account.
    /// While the owner `runs`, an event without an outcome is not lost; see [`EventCounters::around`] for the counters.
    pub(crate) fn new(
        ring: &Ring,
        counted: Vec<EventCounters>,
        mut streams: [StreamEnd; 2],
        runs: bool,
        (account, journal): (&mut AccountBuilder, &mut Journal),
    ) -> Self {
        let mut events: BTreeMap<u64, EventCount> = BTreeMap::new();
        for (id, found) in streams.iter().flat_map(|stream| &stream.position.events) {
            events.entry(*id).or_default().add(*found);
        }
        let [main, nested] = &mut streams;
        let committed = main.committed.saturating_add(nested.committed);
        let mut accounting = RingAccounting::reconcile(counted, &events, committed);
        let discarded = main.discarded.saturating_add(nested.discarded);
        if runs {
            accounting = accounting.without_killed();
        } else {
            main.check(ring, journal);
            nested.check(ring, journal);
            let excess = discarded.saturating_sub(accounting.lost);
            if excess > 0 {
                accounting.contradictions.push(format!("its streams count {excess} more losses than its events"));
            }
        }
        for contradiction in &accounting.contradictions {
            journal.wrong(format!("{}: {contradiction}", ring.path().display()));
        }
        // Losses that were counted by reason but not yet on their stream, and events that were killed.
        main.discarded = main.discarded.saturating_add(accounting.lost.saturating_sub(discarded));
        account.events(ring.class(), ring.path(), &accounting, journal);
        Self { streams, uncounted: accounting.uncounted }
    }
}
