//! Copies the packets of a stream while its owner overwrites them.
//!
//! The owner overwrites the oldest sub-buffer next, so the copy begins there: a reader that copies faster than the owner writes is never
//! overtaken. It does nothing else between two sub-buffers. If it is preempted for longer than the owner needs for the whole ring, it
//! starts again. In the best copy, the packets after the last overtaken one are the newest part of the stream, without a gap.

use super::counters::StreamCounters;
use super::sub_buffers::SubBuffer;
use super::{Ring, Side};
use crate::error::ReadError;

/// Maximum size of a stream that is copied as a whole, in bytes: the size in an untrusted file is otherwise unlimited.
const MAX_SIZE: u64 = 1 << 30;
/// Maximum number of attempts.
const MAX_COPIES: u32 = 24;

/// A copy of one stream of a ring, close to a single moment.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StreamSnapshot {
    /// The stream's counters, read just before.
    pub counters: StreamCounters,
    /// Its sub-buffers, in the order of their packets.
    pub sub_buffers: Vec<SubBuffer>,
    /// Number of older packets left out because the owner was faster.
    overtaken: usize,
}

impl Ring {
    /// Copies all packets of one of its streams while the owner writes and overwrites them. If the owner was faster, the copy is repeated
    /// up to 24 times, and the best one is returned, starting with the first packet after which none was overwritten in the meantime. Needs twice the
    /// memory of the ring.
    ///
    /// # Errors
    /// As [`Ring::counters`].
    pub fn snapshot(&self, side: Side) -> Result<StreamSnapshot, ReadError> {
        let mut best = self.copy(side)?;
        for _ in 1..MAX_COPIES {
            if best.missed() == 0 {
                break;
            }
            let next = self.copy(side)?;
            if next.bytes() > best.bytes() {
                best = next;
            }
        }
        Ok(best)
    }

    /// True if a stream is small enough for two copies in memory: at most 1 GiB.
    pub(crate) fn fits_in_memory(&self, side: Side) -> bool {
        let slots = self.slots(side);
        slots.size.saturating_mul(slots.count) <= MAX_SIZE
    }

    fn copy(&self, side: Side) -> Result<StreamSnapshot, ReadError> {
        let counters = self.counters(side)?;
        let mut found = Vec::new();
        let mut sub_buffers = self.sub_buffers(side, &counters).until_open_packet();
        while let Some(next) = sub_buffers.next_numbered() {
            found.push(next?);
        }
        // The slots of all packets before this one may already be reused.
        let reused = self.slots(side).released_for(self.counters(side)?.closed);
        let overtaken = |(number, found): &(u64, SubBuffer)| *number < reused && matches!(found, SubBuffer::Torn(_));
        let first = found.iter().rposition(overtaken).map_or(0, |last| last + 1);
        let sub_buffers = found.split_off(first).into_iter().map(|(_, found)| found).collect();
        Ok(StreamSnapshot { counters, sub_buffers, overtaken: first })
    }
}

impl StreamSnapshot {
    /// The number of packets that another copy may contain in addition.
    fn missed(&self) -> usize {
        self.overtaken + self.sub_buffers.iter().filter(|found| matches!(found, SubBuffer::Torn(_))).count()
    }

    /// The total size of all packets in bytes.
    fn bytes(&self) -> usize {
        let bytes = |found: &SubBuffer| if let SubBuffer::Packet(packet) = found { packet.bytes.len() } else { 0 };
        self.sub_buffers.iter().map(bytes).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::super::sub_buffers::tests::{Changing, ring};
    use super::*;
    use std::cell::Cell;
    use std::path::Path;
    use tracepoint_ring::channel::HEADER_SIZE;

    /// Whenever the owner overwrites the packet, the copy ends up with one packet: the old one or the new one.
    #[test]
    fn an_overtaken_copy_is_repeated() {
        let (before, after) = (ring(3, &[3; 8]), ring(4, &[4; 64]));
        let mut found = Vec::new();
        for reads in 0..16 {
            let bytes = Changing { before: before.clone(), after: after.clone(), reads: Cell::new(reads) };
            // A header read partly from each is invalid.
            let Ok(Some(ring)) = Ring::of(Path::new("ring"), Box::new(bytes)) else { continue };
            let snapshot = ring.snapshot(Side::Main).expect("it can be read");
            let [SubBuffer::Packet(packet)] = &snapshot.sub_buffers[..] else {
                panic!("after {reads} reads: {snapshot:?}")
            };
            assert_eq!(packet.number, snapshot.counters.closed);
            found.push(packet.number);
        }
        assert!(found.contains(&3) && found.contains(&4), "{found:?}");
    }

    /// In its first round through the ring, the owner closes the packet of which a part was just copied, and continues with the next place.
    #[test]
    fn a_packet_behind_the_open_one_is_of_a_later_moment() {
        let two_places = |records: &[u8]| {
            let mut bytes = ring(0, records);
            bytes[112] = 2;
            bytes
        };
        let (before, mut after) = (two_places(&[1; 8]), two_places(&[1; 64]));
        let next = ring(1, &[2; 8]);
        after[328] = 1;
        after[4096 + 512..4096 + 1024].copy_from_slice(&next[4096..4096 + 512]);
        let mut found = Vec::new();
        for reads in 0..16 {
            let bytes = Changing { before: before.clone(), after: after.clone(), reads: Cell::new(3 + reads) };
            let ring = Ring::of(Path::new("ring"), Box::new(bytes)).expect("a header").expect("begun");
            let snapshot = ring.copy(Side::Main).expect("it can be read");
            let lengths = snapshot.sub_buffers.iter().filter_map(|found| match found {
                SubBuffer::Packet(packet) => Some(packet.bytes.len() - HEADER_SIZE),
                _ => None,
            });
            found.push(lengths.collect::<Vec<_>>());
        }
        assert!(found.contains(&vec![8]) && found.contains(&vec![64]), "{found:?}");
        assert!(found.iter().all(|lengths| [&[8][..], &[64], &[64, 8]].contains(&&lengths[..])), "{found:?}");
    }
}
