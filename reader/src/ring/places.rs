//! The places of a stream's packets, and what is in them.

use super::head::{self, Head};
use super::header;
use super::page::Page;
use super::{Ring, Side};
use crate::error::ReadError;
use std::ops::RangeInclusive;

/// What is in a place.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Place {
    /// No packet: it was never used, or the next packet was being prepared in it.
    Unused,
    /// Something that is no packet of the stream, or was overwritten while it was read; and why it is taken for that.
    Torn(String),
    /// A packet.
    Packet(RingPacket),
}

/// A copy of a packet: of all that was committed when it was made.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RingPacket {
    /// Its number in the stream, counted from 0; its `packet_seq_num` is one more.
    pub number: u64,
    /// Whether it had not been closed: `timestamp_end`, `packet_size` and `events_discarded` say nothing then.
    pub open: bool,
    /// Its bytes, up to the end of its content.
    pub bytes: Vec<u8>,
}

/// The places of a stream, in the order of their packets. Those that hold nothing come where their packet would.
#[derive(Debug)]
pub struct Places<'a> {
    ring: &'a Ring,
    side: Side,
    closed: u64,
    numbers: RangeInclusive<u64>,
}

impl<'a> Places<'a> {
    pub(super) fn new(ring: &'a Ring, side: Side, closed: u64) -> Self {
        let count = ring.header.places(side).count;
        let oldest = closed.saturating_sub(count);
        #[expect(clippy::reversed_empty_ranges, reason = "no place, no packet")]
        let numbers = if count == 0 { 1..=0 } else { oldest..=closed.max(count - 1) };
        Self { ring, side, closed, numbers }
    }

    /// What is in the place of packet `number`; `None` if that is told under another number.
    fn look(&self, number: u64) -> Result<Option<Place>, ReadError> {
        let header::Places { offset, size, count } = self.ring.header.places(self.side);
        let at = offset + number % count * size;
        let mut bytes = vec![0; head::SIZE];
        self.ring.fill(&mut bytes, at)?;
        let before = Head::parse(&bytes);
        // The oldest packet and the one that is being written share a place: what is not the oldest is told later.
        let shared = number + count == self.closed;
        if before.magic != head::MAGIC {
            return Ok((!shared).then_some(Place::Unused));
        }
        let torn = |reason: String| Ok(Some(Place::Torn(format!("the place at byte {at}: {reason}"))));
        let header = &self.ring.header;
        if (before.uuid, before.class) != (header.uuid, header.class)
            || before.instance != self.ring.instance(self.side)
        {
            return if shared { Ok(None) } else { torn("a packet of another trace or stream is in it".to_owned()) };
        }
        if before.sequence != number + 1 {
            let oldest = number == self.closed && before.sequence.checked_add(count) == Some(self.closed + 1);
            let found = before.sequence;
            let expected = number + 1;
            return if shared || oldest {
                Ok(None)
            } else {
                torn(format!("packet number {found} is in it, where {expected} should be"))
            };
        }
        // What is committed, then its bytes.
        let mut content = [0; 8];
        self.ring.fill(&mut content, at + head::CONTENT as u64)?;
        let content = u64::from_le_bytes(content);
        if !content.is_multiple_of(8) || content < head::SIZE as u64 * 8 || content > size * 8 {
            return torn(format!("a content of {content} bits does not fit into {size} bytes"));
        }
        bytes.resize((content / 8) as usize, 0);
        self.ring.fill(&mut bytes, at)?;
        let mut again = [0; head::SIZE];
        self.ring.fill(&mut again, at)?;
        let after = Head::parse(&again);
        if (after.magic, after.sequence) != (before.magic, before.sequence) {
            return torn("it was overwritten while it was read".to_owned());
        }
        let open = number >= self.closed;
        let copied = Page(&bytes).u64(56);
        if !open && copied != content {
            return torn(format!("its packet is closed, and has {content} bits of content in {copied} bits"));
        }
        // The bytes may be younger than the size that covers them.
        bytes[head::CONTENT..head::CONTENT + 8].copy_from_slice(&content.to_le_bytes());
        Ok(Some(Place::Packet(RingPacket { number, open, bytes })))
    }
}

impl Iterator for Places<'_> {
    type Item = Result<Place, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let number = self.numbers.next()?;
            if let Some(found) = self.look(number).transpose() {
                return Some(found);
            }
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::bytes::Bytes;
    use super::*;
    use std::cell::Cell;
    use std::io;
    use std::path::Path;

    /// A ring with one place, from 4096 on, whose packet is `number` with records of equal bytes.
    pub(in crate::ring) fn ring(number: u64, records: &[u8]) -> Vec<u8> {
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
        let content = (head::SIZE + records.len()) as u64 * 8;
        let head = Head {
            magic: head::MAGIC,
            uuid: [0; 16],
            class: 0,
            instance: 0,
            begin: 0,
            end: 0,
            content,
            size: content,
            sequence: number + 1,
            discarded: 0,
            tid: 0,
            before: 0,
        };
        put(4096, &head.bytes());
        put(4096 + head::SIZE, records);
        bytes
    }

    /// Bytes that become others after so many reads.
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

    /// What is read of a ring that changes after each number of reads.
    fn looks(before: &[u8], after: &[u8]) -> Vec<Option<Place>> {
        let look = |reads: u32| {
            // The first three reads are of the header and the counters.
            let bytes = Changing { before: before.to_vec(), after: after.to_vec(), reads: Cell::new(3 + reads) };
            let ring = Ring::of(Path::new("ring"), Box::new(bytes)).expect("a header").expect("begun");
            let counters = ring.counters(Side::Main).expect("counters");
            let mut places = ring.places(Side::Main, &counters);
            places.next().transpose().expect("it can be read")
        };
        (0..6).map(look).collect()
    }

    #[test]
    fn a_packet_that_grows_is_taken_up_to_a_whole_record() {
        let (less, more) = (ring(0, &[1; 8]), ring(0, &[1; 16]));
        for look in looks(&less, &more) {
            let Some(Place::Packet(packet)) = look else { panic!("{look:?}") };
            let records = &packet.bytes[head::SIZE..];
            assert!(records == [1; 8] || records == [1; 16], "{records:?}");
            assert_eq!(Head::parse(&packet.bytes).content, packet.bytes.len() as u64 * 8);
        }
    }

    #[test]
    fn a_packet_that_is_overwritten_is_not_taken() {
        let mut torn = 0;
        for look in looks(&ring(3, &[3; 8]), &ring(4, &[4; 64])) {
            match look {
                Some(Place::Packet(packet)) => {
                    assert_eq!((packet.number, &packet.bytes[head::SIZE..]), (3, &[3; 8][..]));
                }
                Some(Place::Torn(_)) => torn += 1,
                other => panic!("{other:?}"),
            }
        }
        assert!(torn > 0);
        let mut prepared = ring(3, &[3; 8]);
        prepared[4096..4100].fill(0);
        for look in looks(&ring(3, &[3; 8]), &prepared) {
            assert!(!matches!(look, Some(Place::Packet(packet)) if packet.bytes[..4] == [0; 4]));
        }
    }
}
