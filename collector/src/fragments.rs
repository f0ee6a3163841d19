//! Reassembles packets that arrive as several datagrams. Has no socket, and callers pass the time.
//!
//! All fragments of a packet except the last have the same size, so a bitmap records which have arrived. The first fragment of a packet reserves the
//! packet's memory from the limit that all senders share. Without memory the fragment is dropped, and the packet is missing, like a lost one.

use std::collections::HashMap;
use std::time::{Duration, Instant};
use tracepoint_wire::stream::{Datagram, DatagramHeader};

/// Maximum number of incomplete packets per session.
const MAX: usize = 4096;
/// Maximum number of missing byte ranges reported per packet.
const MAX_RANGES: usize = 32;

/// The incomplete packets of a session. `M` holds the memory reserved for a packet.
#[derive(Debug)]
pub(crate) struct Fragments<M> {
    partial: HashMap<(u64, u64), Partial<M>>,
    /// Total size of these packets in bytes, and its limit.
    bytes: u64,
    most: u64,
    /// Fragments that were duplicates, contradicted earlier ones, or found no memory.
    pub(crate) dropped: u64,
}

#[derive(Debug)]
struct Partial<M> {
    unit: u32,
    total: u32,
    /// Bytes up to the last fragment that has arrived; the capacity is that of the whole packet.
    bytes: Vec<u8>,
    /// Bitmap of the fragments that have arrived.
    have: Vec<u64>,
    left: u32,
    latest: Instant,
    memory: M,
}

impl<M> Partial<M> {
    /// Stores a fragment. Fragments mostly arrive in order, and are then appended.
    fn put(&mut self, offset: usize, bytes: &[u8]) {
        let end = offset + bytes.len();
        if offset < self.bytes.len() {
            self.bytes[offset..end].copy_from_slice(bytes);
        } else {
            self.bytes.resize(offset, 0);
            self.bytes.extend_from_slice(bytes);
        }
    }
}

impl<M> Fragments<M> {
    /// Limits the incomplete packets to `most` bytes in total. A single packet may be larger.
    pub(crate) fn new(most: u64) -> Self {
        Self { partial: HashMap::new(), bytes: 0, most, dropped: 0 }
    }

    /// Adds a fragment and returns the packet if this completes it. `reserve` takes memory for a number of bytes.
    pub(crate) fn push(
        &mut self,
        datagram: &Datagram<'_>,
        now: Instant,
        reserve: impl FnOnce(u32) -> Option<M>,
    ) -> Option<(Vec<u8>, M)> {
        let DatagramHeader { handle, seq, offset, total, unit, .. } = datagram.header;
        if datagram.bytes.len() == total as usize {
            self.take((handle, seq));
            let Some(memory) = reserve(total) else {
                self.dropped += 1;
                return None;
            };
            return Some((datagram.bytes.to_vec(), memory));
        }
        let key = (handle, seq);
        if !self.partial.contains_key(&key) {
            let count = total.div_ceil(unit);
            // The bitmap is charged as well: it is large if fragments are tiny.
            let fits =
                self.partial.is_empty() || self.partial.len() < MAX && self.bytes + u64::from(total) <= self.most;
            let memory = if fits { reserve(total.saturating_add(count / 8)) } else { None };
            let Some(memory) = memory else {
                self.dropped += 1;
                return None;
            };
            let have = vec![0; count.div_ceil(64) as usize];
            let bytes = Vec::with_capacity(total as usize);
            let partial = Partial { unit, total, bytes, have, left: count, latest: now, memory };
            self.bytes += u64::from(total);
            self.partial.insert(key, partial);
        }
        let partial = self.partial.get_mut(&key)?;
        let number = offset / unit;
        let (word, bit) = ((number / 64) as usize, 1 << (number % 64));
        let fits = partial.unit == unit && partial.total == total;
        if !fits || partial.have[word] & bit != 0 {
            self.dropped += 1;
            return None;
        }
        partial.have[word] |= bit;
        partial.left -= 1;
        partial.latest = now;
        partial.put(offset as usize, datagram.bytes);
        if partial.left > 0 {
            return None;
        }
        self.take(key).map(|partial| (partial.bytes, partial.memory))
    }

    fn take(&mut self, key: (u64, u64)) -> Option<Partial<M>> {
        let partial = self.partial.remove(&key)?;
        self.bytes -= u64::from(partial.total);
        Some(partial)
    }

    /// Returns the missing byte ranges of a packet as offset and length; `None` if no fragment of it has arrived.
    pub(crate) fn missing(&self, handle: u64, seq: u64) -> Option<Vec<(u32, u32)>> {
        let partial = self.partial.get(&(handle, seq))?;
        let total = partial.total;
        let mut ranges: Vec<(u32, u32)> = Vec::new();
        for number in 0..total.div_ceil(partial.unit) {
            if partial.have[(number / 64) as usize] & 1 << (number % 64) != 0 {
                continue;
            }
            let offset = number * partial.unit;
            let length = partial.unit.min(total - offset);
            let is_full = ranges.len() == MAX_RANGES;
            match ranges.last_mut() {
                Some((from, before)) if *from + *before == offset => *before += length,
                _ if is_full => break,
                _ => ranges.push((offset, length)),
            }
        }
        Some(ranges)
    }

    /// Drops packets that have received no fragment for `time`, and those that their stream no longer wants.
    pub(crate) fn expire(&mut self, now: Instant, time: Duration, wants: impl Fn(u64, u64) -> bool) {
        let bytes = &mut self.bytes;
        self.partial.retain(|(handle, seq), partial| {
            let stays = now.saturating_duration_since(partial.latest) < time && wants(*handle, *seq);
            *bytes -= if stays { 0 } else { u64::from(partial.total) };
            stays
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn datagram(seq: u64, offset: u32, unit: u32, packet: &[u8]) -> Datagram<'_> {
        let total = packet.len() as u32;
        let header = DatagramHeader { handle: 1, seq, offset, total, unit, ..DatagramHeader::probe([0; 16]) };
        Datagram { header, bytes: &packet[offset as usize..packet.len().min((offset + unit) as usize)] }
    }

    #[test]
    fn packets_are_complete_in_any_order_of_their_fragments() {
        let packet: Vec<u8> = (0..250).collect();
        let (mut fragments, now) = (Fragments::new(u64::MAX), Instant::now());
        for (seq, order) in [[0, 100, 200], [200, 0, 100], [100, 200, 0]].into_iter().enumerate() {
            let seq = seq as u64;
            for offset in &order[..2] {
                assert!(fragments.push(&datagram(seq, *offset, 100, &packet), now, Some).is_none());
                // A duplicate, and a fragment of another size.
                assert!(fragments.push(&datagram(seq, *offset, 100, &packet), now, Some).is_none());
                assert!(fragments.push(&datagram(seq, 0, 50, &packet), now, Some).is_none());
            }
            let length = if order[2] == 200 { 50 } else { 100 };
            assert_eq!(fragments.missing(1, seq), Some(vec![(order[2], length)]));
            let whole = fragments.push(&datagram(seq, order[2], 100, &packet), now, Some);
            assert_eq!(whole, Some((packet.clone(), 250)));
            assert_eq!(fragments.missing(1, seq), None);
        }
        assert_eq!(fragments.dropped, 12);
        assert_eq!(fragments.push(&datagram(9, 0, 250, &packet), now, Some), Some((packet.clone(), 250)));
    }

    #[test]
    fn a_session_has_its_share_of_the_memory() {
        let packet = [7; 64];
        let (mut fragments, now) = (Fragments::new(150), Instant::now());
        for seq in 0..4 {
            fragments.push(&datagram(seq, 0, 32, &packet), now, Some);
        }
        assert_eq!((fragments.partial.len(), fragments.bytes, fragments.dropped), (2, 128, 2));
        // A completed packet frees its room, and so does an expired one.
        assert!(fragments.push(&datagram(0, 32, 32, &packet), now, Some).is_some());
        fragments.expire(now, Duration::from_secs(1), |_, _| false);
        assert_eq!((fragments.partial.len(), fragments.bytes), (0, 0));
        // A packet larger than the share is accepted if it is the only one.
        let large = [7; 200];
        fragments.push(&datagram(5, 0, 100, &large), now, Some);
        assert!(fragments.push(&datagram(5, 100, 100, &large), now, Some).is_some());
    }

    #[test]
    fn memory_and_numbers_are_bounded() {
        let packet = [7; 64];
        let (mut fragments, now) = (Fragments::<u32>::new(u64::MAX), Instant::now());
        assert!(fragments.push(&datagram(0, 0, 10, &packet), now, |_| None).is_none());
        assert!(fragments.push(&datagram(0, 0, 64, &packet), now, |_| None).is_none());
        assert_eq!((fragments.dropped, fragments.missing(1, 0)), (2, None));
        for seq in 0..=MAX as u64 {
            fragments.push(&datagram(seq, 0, 1, &packet), now, |bytes| {
                assert_eq!(bytes, 64 + 8);
                Some(bytes)
            });
        }
        assert_eq!((fragments.partial.len(), fragments.dropped), (MAX, 3));
        assert_eq!(fragments.missing(1, 5), Some(vec![(1, 63)]));
        fragments.expire(now, Duration::from_secs(1), |_, seq| seq != 5);
        assert_eq!(fragments.partial.len(), MAX - 1);
        fragments.expire(now + Duration::from_secs(1), Duration::from_secs(1), |_, _| true);
        assert_eq!(fragments.partial.len(), 0);
    }
}
