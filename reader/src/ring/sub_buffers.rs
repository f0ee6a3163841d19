//! The sub-buffers of a stream, and the packets in them.

use super::call_order::{first_look, look_again};
use super::{Ring, Side};
use crate::error::ReadError;
use std::ops::RangeInclusive;
use tracepoint_ring::channel::{CONTENT_SIZE, HEADER_SIZE, PACKET_MAGIC, PacketHeader, sequence_of};

/// Number of bytes of a leased packet read at first: most packets that were closed only because of their age are smaller.
const FIRST_READ: u64 = 4096;

/// The contents of a sub-buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SubBuffer {
    /// No packet: it was never used, or its owner was preparing the next packet.
    Unused,
    /// A packet of another stream, or one that was overwritten while it was read; with the reason.
    Torn(String),
    /// A packet.
    Packet(RingPacket),
}

/// A copy of the part of a packet that was committed at the time of the copy.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RingPacket {
    /// Its number in the stream, from 0; its `packet_seq_num` is one more.
    pub number: u64,
    /// True if it had not been closed: its `timestamp_end`, `packet_size` and `events_discarded` are then invalid.
    pub open: bool,
    /// Its bytes, up to the end of its content.
    pub bytes: Vec<u8>,
}

/// Iterates over the sub-buffers of a stream in the order of their packets. A sub-buffer without a packet takes the place of its packet.
#[derive(Debug)]
pub struct SubBuffers<'a> {
    ring: &'a Ring,
    side: Side,
    closed: u64,
    numbers: RangeInclusive<u64>,
}

/// Says if the owner of the ring may overwrite a packet while it is copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// It may not: the packet is closed and was not released.
    Leased,
    /// It may. `closed` is the number of closed packets of the stream.
    Racing { closed: u64 },
}

/// The contents found in the place of a packet.
#[derive(Debug, PartialEq, Eq)]
enum SlotContent {
    /// Zeros: the place was never used, or its memory was returned after all packets had been taken.
    Nothing,
    /// A place that the owner was preparing for the next packet.
    Prepared,
    /// Other bytes.
    Garbage,
    OtherStream,
    /// The packet with this `packet_seq_num`.
    OtherPacket(u64),
    Malformed(String),
    /// The packet, with its size in bytes.
    Packet(usize),
}

impl Ring {
    /// Copies a closed packet that was not released to the start of `bytes`, which grows as needed. Returns its length, or the reason if the
    /// sub-buffer contains something else.
    ///
    /// # Errors
    /// [`ReadError::Io`] and [`ReadError::Ring`] if the file cannot be read.
    pub(crate) fn leased_packet(
        &self,
        side: Side,
        number: u64,
        bytes: &mut Vec<u8>,
    ) -> Result<Result<usize, String>, ReadError> {
        let at = self.header.area(side).offset_of(number);
        Ok(match self.copy_packet(side, number, Access::Leased, bytes)? {
            SlotContent::Packet(length) => Ok(length),
            SlotContent::Malformed(reason) => Err(format!("the sub-buffer at byte {at}: {reason}")),
            SlotContent::Nothing
            | SlotContent::Prepared
            | SlotContent::Garbage
            | SlotContent::OtherStream
            | SlotContent::OtherPacket(_) => {
                Err(format!("the sub-buffer at byte {at} does not hold packet {}", sequence_of(number)))
            }
        })
    }

    /// Copies packet `number` to the start of `bytes`.
    fn copy_packet(
        &self,
        side: Side,
        number: u64,
        access: Access,
        bytes: &mut Vec<u8>,
    ) -> Result<SlotContent, ReadError> {
        let slots = self.slots(side);
        let at = self.header.area(side).offset_of(number);
        let first = if access == Access::Leased { FIRST_READ.min(slots.size) as usize } else { HEADER_SIZE };
        grow(bytes, first);
        let mut look = || self.fill(&mut bytes[..first], at).map(|()| PacketHeader::parse(bytes));
        let head = match access {
            Access::Leased => look()?,
            Access::Racing { .. } => first_look(look, |head| head.magic == PACKET_MAGIC)?,
        };
        if head.magic != PACKET_MAGIC {
            return Ok(match (head.magic, head.stream.uuid) {
                (0, uuid) if uuid == [0; 16] => SlotContent::Nothing,
                // When the owner prepares a place, it clears the magic first and keeps the uuid.
                (0, uuid) if is_partly(&uuid, &self.uuid()) => SlotContent::Prepared,
                _ => SlotContent::Garbage,
            });
        }
        if head.stream != self.stream(side) {
            return Ok(SlotContent::OtherStream);
        }
        if head.sequence != sequence_of(number) {
            return Ok(SlotContent::OtherPacket(head.sequence));
        }
        let content = match access {
            Access::Leased => head.content_bits,
            // The committed size first, then the bytes that it covers.
            Access::Racing { .. } => {
                let mut content = [0; 8];
                self.fill(&mut content, at + CONTENT_SIZE as u64)?;
                u64::from_le_bytes(content)
            }
        };
        if !content.is_multiple_of(8) || content < HEADER_SIZE as u64 * 8 || content > slots.size * 8 {
            return Ok(SlotContent::Malformed(format!(
                "a content of {content} bits does not fit into {} bytes",
                slots.size
            )));
        }
        let length = (content / 8) as usize;
        grow(bytes, length);
        let is_open = match access {
            Access::Leased => {
                if length > first {
                    self.fill(&mut bytes[first..length], at + first as u64)?;
                }
                false
            }
            Access::Racing { closed } => {
                self.fill(&mut bytes[..length], at)?;
                let look = || {
                    let mut again = [0; HEADER_SIZE];
                    self.fill(&mut again, at)?;
                    let again = PacketHeader::parse(&again);
                    Ok::<_, ReadError>((again.magic, again.sequence))
                };
                if look_again(look)? != (head.magic, head.sequence) {
                    return Ok(SlotContent::Malformed("it was overwritten while it was read".to_owned()));
                }
                number >= closed
            }
        };
        let packet_bits = PacketHeader::parse(bytes).packet_bits;
        if !is_open && packet_bits != content {
            return Ok(SlotContent::Malformed(format!(
                "its packet is closed, and has {content} bits of content in {packet_bits} bits"
            )));
        }
        // The header copy may be newer than the size that was read first.
        bytes[CONTENT_SIZE..CONTENT_SIZE + 8].copy_from_slice(&content.to_le_bytes());
        Ok(SlotContent::Packet(length))
    }
}

/// True if a place that was never used has the uuid up to some word: the owner may be killed between two stores. The first word contains the
/// magic and four bytes of the uuid.
fn is_partly(found: &[u8; 16], uuid: &[u8; 16]) -> bool {
    [4, 12, 16].into_iter().any(|end| found[..end] == uuid[..end] && found[end..].iter().all(|byte| *byte == 0))
}

fn grow(bytes: &mut Vec<u8>, length: usize) {
    if bytes.len() < length {
        bytes.resize(length, 0);
    }
}

impl<'a> SubBuffers<'a> {
    pub(super) fn new(ring: &'a Ring, side: Side, closed: u64) -> Self {
        let slots = ring.slots(side);
        #[expect(clippy::reversed_empty_ranges, reason = "without sub-buffers there are no packets")]
        let numbers = if slots.count == 0 { 1..=0 } else { slots.oldest(closed)..=closed.max(slots.count - 1) };
        Self { ring, side, closed, numbers }
    }

    /// The sub-buffer of packet `number`; `None` if it is reported under another number.
    fn look(&self, number: u64) -> Result<Option<SubBuffer>, ReadError> {
        let at = self.ring.header.area(self.side).offset_of(number);
        let count = self.ring.slots(self.side).count;
        let mut bytes = Vec::new();
        let found = self.ring.copy_packet(self.side, number, Access::Racing { closed: self.closed }, &mut bytes)?;
        let torn = |reason: String| Ok(Some(SubBuffer::Torn(format!("the sub-buffer at byte {at}: {reason}"))));
        // The oldest packet and the open one share a sub-buffer: unless it contains the oldest packet, it is reported under the open one's number.
        let is_shared = number + count == self.closed;
        match found {
            SlotContent::Malformed(reason) => torn(reason),
            SlotContent::Packet(length) => {
                bytes.truncate(length);
                Ok(Some(SubBuffer::Packet(RingPacket { number, open: number >= self.closed, bytes })))
            }
            SlotContent::Nothing if number < self.closed && number >= self.ring.released(self.side)? => {
                torn(format!("packet number {} is missing there", sequence_of(number)))
            }
            _ if is_shared => Ok(None),
            SlotContent::Nothing => Ok(Some(SubBuffer::Unused)),
            SlotContent::Prepared if number >= self.closed => Ok(Some(SubBuffer::Unused)),
            SlotContent::Prepared | SlotContent::Garbage => {
                torn(format!("it does not hold packet number {}", sequence_of(number)))
            }
            SlotContent::OtherStream => torn("it holds a packet of another trace or stream".to_owned()),
            SlotContent::OtherPacket(sequence) => {
                if number == self.closed && sequence.checked_add(count) == Some(sequence_of(self.closed)) {
                    return Ok(None);
                }
                torn(format!("it holds packet number {sequence}, where {} should be", sequence_of(number)))
            }
        }
    }
}

impl SubBuffers<'_> {
    /// Leaves out the places after the open packet. In its first round through the ring, the owner may have filled packets there after a
    /// part of the then open one was copied: there would be a gap between the two.
    pub(crate) fn until_open_packet(mut self) -> Self {
        if self.closed < *self.numbers.end() {
            self.numbers = *self.numbers.start()..=self.closed;
        }
        self
    }

    /// The next sub-buffer, with the number of the packet that should be in it.
    pub(super) fn next_numbered(&mut self) -> Option<Result<(u64, SubBuffer), ReadError>> {
        loop {
            let number = self.numbers.next()?;
            if let Some(found) = self.look(number).transpose() {
                return Some(found.map(|found| (number, found)));
            }
        }
    }
}

impl Iterator for SubBuffers<'_> {
    type Item = Result<SubBuffer, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(self.next_numbered()?.map(|(_, found)| found))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::super::bytes::Bytes;
    use super::*;
    use std::cell::Cell;
    use std::io;
    use std::path::Path;
    use tracepoint_ring::channel::StreamKey;

    /// A ring with one sub-buffer, at 4096, whose packet is `number` with records of equal bytes.
    pub(crate) fn ring(number: u64, records: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; 8192];
        let mut put = |at: usize, field: &[u8]| bytes[at..at + field.len()].copy_from_slice(field);
        put(0, b"tp-ring\n");
        for (at, number) in [(8, 1u32), (12, 4096)] {
            put(at, &number.to_le_bytes());
        }
        let fields = [(16, 8192), (64, 4096), (72, 128), (96, 4096), (104, 512), (112, 1), (120, 4096), (328, number)];
        for (at, field) in fields {
            put(at, &u64::to_le_bytes(field));
        }
        put(3648, b"\x01\0c");
        let empty = PacketHeader::empty(StreamKey::default(), 0);
        let head = PacketHeader { sequence: sequence_of(number), ..empty.with_size(HEADER_SIZE + records.len()) };
        put(4096, &head.bytes());
        put(4096 + HEADER_SIZE, records);
        bytes
    }

    /// Bytes that change after a number of reads.
    #[derive(Debug)]
    pub(in crate::ring) struct Changing {
        pub(in crate::ring) before: Vec<u8>,
        pub(in crate::ring) after: Vec<u8>,
        pub(in crate::ring) reads: Cell<u32>,
    }

    impl Bytes for Changing {
        fn length(&self) -> io::Result<u64> {
            self.before.length()
        }

        fn fill(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
            let left = self.reads.get();
            self.reads.set(left.saturating_sub(1));
            if left == 0 { &self.after } else { &self.before }.fill(buffer, offset)
        }
    }

    /// The sub-buffers read from a ring that changes after each possible number of reads.
    fn looks(before: &[u8], after: &[u8]) -> Vec<Option<SubBuffer>> {
        let look = |reads: u32| {
            // The first three reads are of the header and the counters.
            let bytes = Changing { before: before.to_vec(), after: after.to_vec(), reads: Cell::new(3 + reads) };
            let ring = Ring::of(Path::new("ring"), Box::new(bytes)).expect("a header").expect("begun");
            let counters = ring.counters(Side::Main).expect("counters");
            let mut sub_buffers = ring.sub_buffers(Side::Main, &counters);
            sub_buffers.next().transpose().expect("it can be read")
        };
        (0..10).map(look).collect()
    }

    /// H1: the owner writes the magic last, and records into the ring at once.
    #[test]
    fn a_ring_that_is_made_between_two_reads_is_complete_or_not_begun() {
        let after = ring(0, &[1; 8]);
        let found: Vec<_> = (0..12)
            .map(|reads| {
                let bytes = Changing { before: vec![0; 8192], after: after.clone(), reads: Cell::new(reads) };
                Ring::of(Path::new("ring"), Box::new(bytes)).expect("no damage").is_some()
            })
            .collect();
        assert!(found[0] && found[1] && !found[11], "{found:?}");
    }

    #[test]
    fn a_growing_packet_is_copied_up_to_a_whole_record() {
        let (less, more) = (ring(0, &[1; 8]), ring(0, &[1; 16]));
        for look in looks(&less, &more) {
            let Some(SubBuffer::Packet(packet)) = look else { panic!("{look:?}") };
            let records = &packet.bytes[HEADER_SIZE..];
            assert!(records == [1; 8] || records == [1; 16], "{records:?}");
            assert_eq!(PacketHeader::parse(&packet.bytes).content_bits, packet.bytes.len() as u64 * 8);
        }
    }

    /// Its owner may have been killed between any two stores of the uuid.
    #[test]
    fn a_place_that_is_prepared_for_the_first_time_is_unused() {
        for (uuid_bytes, is_unused) in [(0, true), (4, true), (5, false), (12, true), (14, false), (16, true)] {
            let mut bytes = ring(0, &[]);
            bytes[24..40].fill(7);
            bytes[4096..4096 + HEADER_SIZE].fill(0);
            bytes[4100..4100 + uuid_bytes].fill(7);
            let found = looks(&bytes, &bytes).remove(0);
            assert_eq!(matches!(found, Some(SubBuffer::Unused)), is_unused, "{uuid_bytes} bytes: {found:?}");
        }
    }

    #[test]
    fn an_overwritten_packet_is_not_copied() {
        let mut torn = 0;
        for look in looks(&ring(3, &[3; 8]), &ring(4, &[4; 64])) {
            match look {
                Some(SubBuffer::Packet(packet)) => {
                    assert_eq!((packet.number, &packet.bytes[HEADER_SIZE..]), (3, &[3; 8][..]));
                }
                Some(SubBuffer::Torn(_)) => torn += 1,
                other => panic!("{other:?}"),
            }
        }
        assert!(torn > 0);
        let mut prepared = ring(3, &[3; 8]);
        prepared[4096..4100].fill(0);
        for look in looks(&ring(3, &[3; 8]), &prepared) {
            assert!(!matches!(look, Some(SubBuffer::Packet(packet)) if packet.bytes[..4] == [0; 4]));
        }
    }
}
