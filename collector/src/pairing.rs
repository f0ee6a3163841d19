//! Pairs the packets of a stock sender with their indexes.
//!
//! A stock sender sends a packet over the data connection and its index over the control connection, in either order. The indexes come over one
//! connection, in the order of the stream; packets may be spread over several. So a packet leaves in the order of the indexes, as soon as it
//! has its own, and a beacon leaves behind the packets whose indexes came before it.
//!
//! ```text
//!                  first index with its packet: both leave
//!   Indexed ◀──────────────────────────────────────────────┐
//!      │                                                    │
//!      ├─ packets wait for an index, time is up ──▶ Unindexed: packets leave by number, indexes are ignored
//!      └─ the first index waits for its packet, and packets behind it wait, time is up ──▶ the packet is missing; go on
//! ```
//!
//! A packet whose number is not above that of the last one that left is late or a duplicate; it never leaves.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};
use tracepoint_wire::relay::Index;

/// How long packets wait for their indexes if the stream has had none, and an index for its packet while others wait behind it.
const PATIENCE: Duration = Duration::from_secs(2);
/// The same for packets of a stream that has had indexes.
const INDEXED_PATIENCE: Duration = Duration::from_secs(20);
/// The most indexes that wait for packets.
const MOST_INDEXES: usize = 4096;

/// What leaves, in the order in which it is stored.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Paired<P> {
    /// A packet; without an index if the stream has none.
    Packet { sequence: u64, packet: P, index: Option<Index> },
    /// No event before this time will follow.
    Beacon { time: u64 },
    /// From here on the stream has no indexes.
    Unindexed,
}

/// Packets and indexes that wait for each other.
#[derive(Debug)]
pub(crate) struct Pairing<P> {
    packets: BTreeMap<u64, P>,
    indexes: VecDeque<Index>,
    /// The number behind the last packet that left.
    next: u64,
    mode: Mode,
    /// Since when nothing could leave.
    waits_since: Option<Instant>,
    /// Packets that came too late, or twice.
    pub(crate) late: u64,
    /// Indexes whose packets did not come.
    pub(crate) missing: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// Nothing has left.
    New,
    Indexed,
    Unindexed,
}

impl<P> Default for Pairing<P> {
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

impl<P> Pairing<P> {
    /// A packet has come.
    pub(crate) fn packet(&mut self, sequence: u64, packet: P) {
        if sequence < self.next || self.packets.contains_key(&sequence) {
            self.late += 1;
        } else {
            self.packets.insert(sequence, packet);
        }
    }

    /// An index or a beacon has come.
    pub(crate) fn index(&mut self, index: Index) {
        if self.mode != Mode::Unindexed && (index.is_beacon() || index.sequence >= self.next) {
            self.indexes.push_back(index);
        }
    }

    /// What leaves next, if anything can.
    pub(crate) fn next(&mut self, now: Instant) -> Option<Paired<P>> {
        let paired = self.pair(now);
        if paired.is_some() || self.packets.is_empty() && self.indexes.is_empty() {
            self.waits_since = None;
        } else {
            self.waits_since.get_or_insert(now);
        }
        paired
    }

    fn pair(&mut self, now: Instant) -> Option<Paired<P>> {
        loop {
            if self.mode == Mode::Unindexed {
                let (sequence, packet) = self.packets.pop_first()?;
                self.next = sequence.saturating_add(1);
                return Some(Paired::Packet { sequence, packet, index: None });
            }
            let Some(index) = self.indexes.front().copied() else {
                if self.packets.is_empty() || !self.waited(now) {
                    return None;
                }
                self.mode = Mode::Unindexed;
                return Some(Paired::Unindexed);
            };
            if index.is_beacon() {
                self.indexes.pop_front();
                return Some(Paired::Beacon { time: index.end });
            }
            if let Some(packet) = self.packets.remove(&index.sequence) {
                self.indexes.pop_front();
                // Lower ones came before their indexes; those cannot come any more.
                let above = self.packets.split_off(&index.sequence);
                self.late += self.packets.len() as u64;
                self.packets = above;
                self.next = index.sequence.saturating_add(1);
                self.mode = Mode::Indexed;
                return Some(Paired::Packet { sequence: index.sequence, packet, index: Some(index) });
            }
            let others_wait = !self.packets.is_empty() && self.waited(now);
            if index.sequence >= self.next && !others_wait && self.indexes.len() <= MOST_INDEXES {
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

    /// Whether indexes wait for packets that may still come.
    pub(crate) fn wants_packets(&self) -> bool {
        self.indexes.iter().any(|index| !index.is_beacon())
    }

    /// Whether anything waits for time to pass.
    pub(crate) fn is_waiting(&self) -> bool {
        self.waits_since.is_some()
    }

    /// Whether packets wait.
    pub(crate) fn has_packets(&self) -> bool {
        !self.packets.is_empty()
    }

    /// Whether the packet with this number has come, or cannot come any more. 2^64 - 1: there is none.
    pub(crate) fn has_passed(&self, last: u64) -> bool {
        let after = last.wrapping_add(1);
        after <= self.next || self.packets.last_key_value().is_some_and(|(highest, _)| *highest >= last)
    }

    /// Nothing more comes: indexes without packets are missing, and packets without indexes leave without.
    pub(crate) fn finish(&mut self) -> Vec<Paired<P>> {
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
                out.push(Paired::Unindexed);
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

    /// Numbers of packets with an index; beacons as their time + 100, other steps as 1000 and the number.
    fn left(pairing: &mut Pairing<u64>, now: Instant) -> Vec<u64> {
        std::iter::from_fn(|| pairing.next(now)).map(|paired| number(&paired)).collect()
    }

    fn number(paired: &Paired<u64>) -> u64 {
        match *paired {
            Paired::Packet { sequence, packet, index } => {
                assert_eq!(sequence, packet);
                if index.is_some() { sequence } else { 1000 + sequence }
            }
            Paired::Beacon { time } => 100 + time,
            Paired::Unindexed => 1000,
        }
    }

    #[test]
    fn packets_leave_in_the_order_of_indexes() {
        let (mut pairing, now) = (Pairing::default(), Instant::now());
        pairing.packet(1, 1);
        assert_eq!(left(&mut pairing, now), NONE);
        pairing.index(index(0));
        pairing.index(index(1));
        pairing.index(beacon(7));
        assert_eq!(left(&mut pairing, now), NONE);
        assert!(pairing.wants_packets() && pairing.has_packets() && !pairing.has_passed(2) && pairing.has_passed(1));
        pairing.packet(0, 0);
        assert_eq!(left(&mut pairing, now), [0, 1, 107]);
        // A gap is none of this module's business.
        pairing.index(index(5));
        pairing.packet(5, 5);
        assert_eq!(left(&mut pairing, now), [5]);
        assert!(pairing.has_passed(5) && pairing.has_passed(u64::MAX) && !pairing.has_passed(6));
        assert_eq!((pairing.late, pairing.missing), (0, 0));
    }

    #[test]
    fn late_packets_and_duplicates_never_leave() {
        let (mut pairing, now) = (Pairing::default(), Instant::now());
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
        let (mut pairing, now) = (Pairing::default(), Instant::now());
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
        let (mut pairing, now) = (Pairing::default(), Instant::now());
        for sequence in [0, 1] {
            pairing.index(index(sequence));
        }
        assert_eq!(left(&mut pairing, now), NONE);
        // Without packets behind it nothing is lost by waiting.
        assert_eq!(left(&mut pairing, now + 2 * PATIENCE), NONE);
        pairing.packet(1, 1);
        assert_eq!(left(&mut pairing, now + 2 * PATIENCE), [1]);
        assert_eq!(pairing.missing, 1);
        for sequence in 2..3 + MOST_INDEXES as u64 {
            pairing.index(index(sequence));
        }
        assert_eq!(left(&mut pairing, now), NONE);
        assert_eq!((pairing.missing, pairing.indexes.len()), (2, MOST_INDEXES));
    }

    #[test]
    fn nothing_waits_at_the_end() {
        let (mut pairing, now) = (Pairing::default(), Instant::now());
        pairing.index(index(0));
        pairing.index(index(1));
        pairing.packet(1, 1);
        pairing.packet(2, 2);
        assert_eq!(left(&mut pairing, now), NONE);
        assert_eq!(pairing.finish().iter().map(number).collect::<Vec<_>>(), [1, 1000, 1002]);
        assert_eq!(pairing.missing, 1);
    }
}
