//! Pairs the packets of a stock sender with their indexes.
//!
//! A stock sender sends a packet over the data connection and its index over the control connection, in either order. Indexes share one connection
//! and arrive in stream order; packets may be spread over several. So packets are emitted in the order of the indexes, each as soon as it has its
//! own. A beacon is emitted after the packets whose indexes arrived before it.
//!
//! ```text
//!                  first index with its packet: both leave
//!   Indexed ◀──────────────────────────────────────────────┐
//!      │                                                    │
//!      ├─ packets wait for an index, timeout ──▶ Unindexed: packets leave by number, indexes are ignored
//!      └─ the first index waits for its packet, and later packets wait, timeout ──▶ the packet counts as missing
//! ```
//!
//! A packet whose number does not exceed the last emitted one is late or a duplicate, and is dropped.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};
use tracepoint_wire::relay::Index;

/// Time that packets wait for the first index of their stream, and that an index waits for its packet while other packets wait behind it.
const PATIENCE: Duration = Duration::from_secs(2);
/// Time that packets wait for indexes in a stream that has had some.
const INDEXED_PATIENCE: Duration = Duration::from_secs(20);
/// Maximum number of indexes that wait for packets.
const MAX_INDEXES: usize = 4096;

/// An item in storage order.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum StorageItem<P> {
    /// A packet; without an index if the stream has none.
    Packet { sequence: u64, packet: P, index: Option<Index> },
    /// No event before this time follows.
    Beacon { time: u64 },
    /// The stream has no indexes from here on.
    Unindexed,
}

/// Packets and indexes that wait for each other.
#[derive(Debug)]
pub(crate) struct IndexMatcher<P> {
    packets: BTreeMap<u64, P>,
    indexes: VecDeque<Index>,
    /// The number after that of the last emitted packet.
    next: u64,
    mode: Mode,
    /// Since when nothing could be emitted.
    waits_since: Option<Instant>,
    /// Packets that arrived late or twice.
    pub(crate) late: u64,
    /// Indexes whose packets never arrived.
    pub(crate) missing: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// Nothing was emitted yet.
    New,
    Indexed,
    Unindexed,
}

impl<P> Default for IndexMatcher<P> {
    fn default() -> Self {
        Self {
            packets: BTreeMap::new(),
            indexes: VecDeque::new(),
            next: 0,
            mode: Mode::New,
            waits_since: None,
            late: 0,
            missing: 0,
        }
    }
}

impl<P> IndexMatcher<P> {
    pub(crate) fn packet(&mut self, sequence: u64, packet: P) {
        if sequence < self.next || self.packets.contains_key(&sequence) {
            self.late += 1;
        } else {
            self.packets.insert(sequence, packet);
        }
    }

    pub(crate) fn index(&mut self, index: Index) {
        if self.mode != Mode::Unindexed && (index.is_beacon() || index.sequence >= self.next) {
            self.indexes.push_back(index);
        }
    }

    /// Returns the next item that can be emitted.
    pub(crate) fn next(&mut self, now: Instant) -> Option<StorageItem<P>> {
        let paired = self.pair(now);
        if paired.is_some() || self.packets.is_empty() && self.indexes.is_empty() {
            self.waits_since = None;
        } else {
            self.waits_since.get_or_insert(now);
        }
        paired
    }

    fn pair(&mut self, now: Instant) -> Option<StorageItem<P>> {
        loop {
            if self.mode == Mode::Unindexed {
                let (sequence, packet) = self.packets.pop_first()?;
                self.next = sequence.saturating_add(1);
                return Some(StorageItem::Packet { sequence, packet, index: None });
            }
            let Some(index) = self.indexes.front().copied() else {
                if self.packets.is_empty() || !self.waited(now) {
                    return None;
                }
                self.mode = Mode::Unindexed;
                return Some(StorageItem::Unindexed);
            };
            if index.is_beacon() {
                self.indexes.pop_front();
                return Some(StorageItem::Beacon { time: index.end });
            }
            if let Some(packet) = self.packets.remove(&index.sequence) {
                self.indexes.pop_front();
                // Packets with lower numbers arrived before their indexes, and those can no longer arrive.
                let above = self.packets.split_off(&index.sequence);
                self.late += self.packets.len() as u64;
                self.packets = above;
                self.next = index.sequence.saturating_add(1);
                self.mode = Mode::Indexed;
                return Some(StorageItem::Packet { sequence: index.sequence, packet, index: Some(index) });
            }
            let others_wait = !self.packets.is_empty() && self.waited(now);
            if index.sequence >= self.next && !others_wait && self.indexes.len() <= MAX_INDEXES {
                return None;
            }
            self.indexes.pop_front();
            self.missing += 1;
        }
    }

    fn waited(&self, now: Instant) -> bool {
        let patience = if self.mode == Mode::Indexed && self.indexes.is_empty() { INDEXED_PATIENCE } else { PATIENCE };
        self.waits_since.is_some_and(|since| now.saturating_duration_since(since) >= patience)
    }

    /// Returns whether indexes wait for packets that may still arrive.
    pub(crate) fn wants_packets(&self) -> bool {
        self.indexes.iter().any(|index| !index.is_beacon())
    }

    /// Returns whether anything waits for a timeout.
    pub(crate) fn is_waiting(&self) -> bool {
        self.waits_since.is_some()
    }

    /// Returns whether packets wait.
    pub(crate) fn has_packets(&self) -> bool {
        !self.packets.is_empty()
    }

    /// Returns whether the packet numbered `last` has arrived or can no longer arrive. 2^64 - 1 means that the stream has no last packet.
    pub(crate) fn has_passed(&self, last: u64) -> bool {
        let after = last.wrapping_add(1);
        after <= self.next || self.packets.last_key_value().is_some_and(|(highest, _)| *highest >= last)
    }

    /// Emits everything at the end of the stream: indexes without packets count as missing, and packets without indexes are emitted without.
    pub(crate) fn finish(&mut self) -> Vec<StorageItem<P>> {
        let mut out = Vec::new();
        let now = Instant::now();
        loop {
            while let Some(paired) = self.pair(now) {
                out.push(paired);
            }
            if self.indexes.pop_front().is_some() {
                self.missing += 1;
            } else if self.packets.is_empty() {
                return out;
            } else {
                self.mode = Mode::Unindexed;
                out.push(StorageItem::Unindexed);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: [u64; 0] = [];

    fn index(sequence: u64) -> Index {
        Index { sequence, packet_size: 8, ..Index::default() }
    }

    fn beacon(end: u64) -> Index {
        Index { end, ..Index::default() }
    }

    /// Numbers of packets with an index; beacons as their time + 100, other steps as 1000 plus the number.
    fn left(pairing: &mut IndexMatcher<u64>, now: Instant) -> Vec<u64> {
        std::iter::from_fn(|| pairing.next(now)).map(|paired| number(&paired)).collect()
    }

    fn number(paired: &StorageItem<u64>) -> u64 {
        match *paired {
            StorageItem::Packet { sequence, packet, index } => {
                assert_eq!(sequence, packet);
                if index.is_some() { sequence } else { 1000 + sequence }
            }
            StorageItem::Beacon { time } => 100 + time,
            StorageItem::Unindexed => 1000,
        }
    }

    #[test]
    fn packets_leave_in_the_order_of_indexes() {
        let (mut pairing, now) = (IndexMatcher::default(), Instant::now());
        pairing.packet(1, 1);
        assert_eq!(left(&mut pairing, now), NONE);
        pairing.index(index(0));
        pairing.index(index(1));
        pairing.index(beacon(7));
        assert_eq!(left(&mut pairing, now), NONE);
        assert!(pairing.wants_packets() && pairing.has_packets() && !pairing.has_passed(2) && pairing.has_passed(1));
        pairing.packet(0, 0);
        assert_eq!(left(&mut pairing, now), [0, 1, 107]);
        // Gaps in the numbers are not this module's concern.
        pairing.index(index(5));
        pairing.packet(5, 5);
        assert_eq!(left(&mut pairing, now), [5]);
        assert!(pairing.has_passed(5) && pairing.has_passed(u64::MAX) && !pairing.has_passed(6));
        assert_eq!((pairing.late, pairing.missing), (0, 0));
    }

    #[test]
    fn late_packets_and_duplicates_never_leave() {
        let (mut pairing, now) = (IndexMatcher::default(), Instant::now());
        for sequence in [3, 3, 4, 2] {
            pairing.packet(sequence, sequence);
        }
        pairing.index(index(3));
        pairing.index(index(3));
        pairing.index(index(1));
        assert_eq!(left(&mut pairing, now), [3]);
        pairing.packet(3, 3);
        pairing.packet(0, 0);
        pairing.index(index(4));
        assert_eq!(left(&mut pairing, now), [4]);
        assert_eq!((pairing.late, pairing.missing), (4, 2));
    }

    #[test]
    fn a_stream_without_indexes_is_stored_all_the_same() {
        let (mut pairing, now) = (IndexMatcher::default(), Instant::now());
        pairing.packet(1, 1);
        pairing.packet(0, 0);
        assert_eq!(left(&mut pairing, now), NONE);
        assert_eq!(left(&mut pairing, now + PATIENCE), [1000, 1000, 1001]);
        pairing.packet(2, 2);
        pairing.index(index(2));
        assert_eq!(left(&mut pairing, now + PATIENCE), [1002]);
        assert!(pairing.finish().is_empty());
    }

    #[test]
    fn a_packet_that_does_not_come_is_not_waited_for() {
        let (mut pairing, now) = (IndexMatcher::default(), Instant::now());
        for sequence in [0, 1] {
            pairing.index(index(sequence));
        }
        assert_eq!(left(&mut pairing, now), NONE);
        // Without packets behind it, waiting loses nothing.
        assert_eq!(left(&mut pairing, now + 2 * PATIENCE), NONE);
        pairing.packet(1, 1);
        assert_eq!(left(&mut pairing, now + 2 * PATIENCE), [1]);
        assert_eq!(pairing.missing, 1);
        for sequence in 2..3 + MAX_INDEXES as u64 {
            pairing.index(index(sequence));
        }
        assert_eq!(left(&mut pairing, now), NONE);
        assert_eq!((pairing.missing, pairing.indexes.len()), (2, MAX_INDEXES));
    }

    #[test]
    fn nothing_waits_at_the_end() {
        let (mut pairing, now) = (IndexMatcher::default(), Instant::now());
        pairing.index(index(0));
        pairing.index(index(1));
        pairing.packet(1, 1);
        pairing.packet(2, 2);
        assert_eq!(left(&mut pairing, now), NONE);
        assert_eq!(pairing.finish().iter().map(number).collect::<Vec<_>>(), [1, 1000, 1002]);
        assert_eq!(pairing.missing, 1);
    }
}
