//! Takes the packets of a ring while its owner, another process, writes it.
//!
//! ```text
//!   read `closed` ─▶ copy packets ─▶ hand them on ─▶ write `released` ─▶ the owner may use their places again
//! ```
//!
//! Nothing is mapped: the file is read and written by system calls, so that whoever cuts it short makes an error here and no signal.
//!
//! `released` is written byte by byte, from the lowest on: of several bytes that are written by one call the owner could see some and not
//! others, of one byte it cannot. What it sees in between is the lower bytes of the new number under the upper ones of the old. The number
//! only grows, so that this is never more than the new one: less at worst, and the owner finds the ring fuller than it is for a moment.

use super::head::{self, Head};
use super::page::Page;
use super::{Place, Ring, Side, StreamCounters, fill};
use crate::error::ReadError;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

/// Where the counters of both streams begin, and `released` of each.
const COUNTERS: u64 = 320;
const RELEASED: u64 = 448;
/// How much of a packet is read at first: most that are closed for their age alone are smaller.
const FIRST: u64 = 4096;

/// A ring, and how far its packets were taken.
#[derive(Debug)]
pub struct RingConsumer {
    ring: Ring,
    file: Arc<File>,
    /// Of each side.
    released: [u64; 2],
}

/// What a packet's header says, once it is known to be one of its stream's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PacketHead {
    /// When it begins, in cycles of the trace's clock.
    pub begin: u64,
    /// When it ends.
    pub end: u64,
    /// How many records the stream has before it.
    pub events_before: u64,
    /// How many events the stream had discarded when it was closed.
    pub discarded: u64,
    /// How many bytes it has.
    pub size: usize,
}

impl PacketHead {
    #[cfg(test)]
    pub(crate) const fn new(begin: u64, end: u64, events_before: u64, discarded: u64) -> Self {
        Self { begin, end, events_before, discarded, size: head::SIZE }
    }

    const fn of(head: &Head) -> Self {
        let size = (head.content / 8) as usize;
        Self { begin: head.begin, end: head.end, events_before: head.before, discarded: head.discarded, size }
    }
}

impl RingConsumer {
    /// Goes on where the consumer before left off. `file` is open for reading and writing, and `path` what it is called in messages.
    /// `None` if the process had not made it a ring yet.
    ///
    /// # Errors
    /// As [`Ring::open`].
    pub fn open(path: &Path, file: File) -> Result<Option<Self>, ReadError> {
        let file = Arc::new(file);
        let Some(ring) = Ring::of(path, Box::new(Arc::clone(&file)))? else { return Ok(None) };
        let mut words = [0; 16];
        fill(path, file.as_ref(), &mut words, RELEASED)?;
        let released = [Page(&words).u64(0), Page(&words).u64(8)];
        Ok(Some(Self { ring, file, released }))
    }

    /// The ring.
    pub const fn ring(&self) -> &Ring {
        &self.ring
    }

    /// The numbers of the packets of both streams that are closed and were not taken.
    ///
    /// # Errors
    /// [`ReadError::Io`] and [`ReadError::Ring`] if the file cannot be read any more.
    pub fn waiting(&self) -> Result<[Range<u64>; 2], ReadError> {
        let mut bytes = [0; (RELEASED - COUNTERS) as usize];
        self.ring.fill(&mut bytes, COUNTERS)?;
        // Its partner is the fence of `release`, on the other side of a round: what is copied after this is as it was when it was closed.
        fence(Ordering::SeqCst);
        let mut waiting =
            Side::ALL.map(|side| self.range(side, StreamCounters::parse(Page(&bytes[side.index() * 64..]))));
        for (range, released) in waiting.iter_mut().zip(self.released) {
            // A position from a file that somebody has spoilt.
            range.start = range.start.max(released.min(range.end));
        }
        Ok(waiting)
    }

    fn range(&self, side: Side, counters: StreamCounters) -> Range<u64> {
        let places = self.ring.header.places(side).count;
        if places == 0 { 0..0 } else { counters.closed.saturating_sub(places)..counters.closed }
    }

    /// How much of a stream such a range is, in percent.
    pub fn percent(&self, side: Side, waiting: &Range<u64>) -> u32 {
        let places = self.ring.header.places(side).count.max(1);
        u32::try_from(waiting.end.saturating_sub(waiting.start).saturating_mul(100) / places).unwrap_or(100)
    }

    /// Copies a closed packet to the begin of `bytes`, which grows to what it takes; the reason if there is something else in its place.
    ///
    /// # Errors
    /// [`ReadError::Io`] and [`ReadError::Ring`] if the file cannot be read any more.
    pub fn packet(
        &self,
        side: Side,
        number: u64,
        bytes: &mut Vec<u8>,
    ) -> Result<Result<PacketHead, String>, ReadError> {
        let places = self.ring.header.places(side);
        let at = places.offset + number % places.count.max(1) * places.size;
        let first = FIRST.min(places.size) as usize;
        if bytes.len() < first {
            bytes.resize(first, 0);
        }
        self.ring.fill(&mut bytes[..first], at)?;
        let head = Head::parse(bytes);
        let header = &self.ring.header;
        let is_it = head.magic == head::MAGIC
            && (head.uuid, head.class, head.instance) == (header.uuid, header.class, self.ring.instance(side))
            && head.sequence == number.wrapping_add(1);
        if !is_it {
            return Ok(Err(format!("the place at byte {at} does not hold packet {}", number.wrapping_add(1))));
        }
        let content = head.content / 8;
        if head.content != head.size
            || !head.content.is_multiple_of(8)
            || !(head::SIZE as u64..=places.size).contains(&content)
        {
            return Ok(Err(format!("the packet at byte {at} has {} bits of content in {}", head.content, head.size)));
        }
        let content = content as usize;
        if bytes.len() < content {
            bytes.resize(content, 0);
        }
        if content > first {
            self.ring.fill(&mut bytes[first..content], at + first as u64)?;
        }
        Ok(Ok(PacketHead::of(&head)))
    }

    /// Gives the places of all packets before `end` back to the owner. What was copied of them was copied before.
    ///
    /// # Errors
    /// What the system answers.
    pub fn release(&mut self, side: Side, end: u64) -> io::Result<()> {
        let released = &mut self.released[side.index()];
        let at = RELEASED + 8 * side.index() as u64;
        // R3: the loads of the copy come before the stores of the owner that they make way for, which come after its load of what is
        // written here.
        fence(Ordering::SeqCst);
        for (index, (new, old)) in end.to_le_bytes().into_iter().zip(released.to_le_bytes()).enumerate() {
            if new != old {
                self.file.write_all_at(&[new], at + index as u64)?;
                // The lower bytes are seen before the upper ones.
                fence(Ordering::SeqCst);
            }
        }
        *released = end;
        Ok(())
    }

    /// A copy of what is committed of the packet that is open, made whole: its time of end is not known yet, and that of its begin.
    /// `None` if there is none. `counters` are the stream's.
    ///
    /// # Errors
    /// As [`Ring::counters`].
    pub fn open_packet(
        &self,
        side: Side,
        counters: &StreamCounters,
    ) -> Result<Option<(PacketHead, Vec<u8>)>, ReadError> {
        for place in self.ring.places(side, counters) {
            let Place::Packet(packet) = place? else { continue };
            if packet.number != counters.closed || !packet.open {
                continue;
            }
            let mut bytes = packet.bytes;
            let mut head = Head::parse(&bytes);
            (head.size, head.end, head.discarded) = (head.content, head.begin, counters.discarded);
            head::put(&mut bytes, &head);
            return Ok(Some((PacketHead::of(&head), bytes)));
        }
        Ok(None)
    }

    /// The empty packet with which a stream begins.
    pub fn first_packet(&self, side: Side) -> Vec<u8> {
        self.empty(side, self.ring.opened()).bytes().to_vec()
    }

    /// The empty packet with which a stream ends: at `time`, numbered `sequence`, after so many `records` and so many `discarded` events.
    pub fn last_packet(&self, side: Side, time: u64, sequence: u64, records: u64, discarded: u64) -> Vec<u8> {
        Head { sequence, discarded, before: records, ..self.empty(side, time) }.bytes().to_vec()
    }

    fn empty(&self, side: Side, time: u64) -> Head {
        Head::empty(self.ring.uuid(), self.ring.class(), self.ring.instance(side), time)
    }
}

/// Says in a packet when it ends.
pub(crate) fn end_at(bytes: &mut [u8], end: u64) {
    let head = Head { end, ..Head::parse(bytes) };
    head::put(bytes, &head);
}

#[cfg(test)]
mod tests {
    use super::super::places::tests::ring;
    use super::*;
    use std::io::Write;

    fn consumer(bytes: &[u8]) -> RingConsumer {
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(bytes).expect("written");
        RingConsumer::open(Path::new("ring"), file).expect("a ring").expect("begun")
    }

    fn word(consumer: &RingConsumer) -> u64 {
        let mut word = [0; 8];
        consumer.file.read_exact_at(&mut word, RELEASED).expect("read");
        u64::from_le_bytes(word)
    }

    /// Whatever the owner sees while the number is written, it is not more than the number.
    #[test]
    fn a_position_never_runs_ahead() {
        let mut consumer = consumer(&ring(3, &[3; 8]));
        for (from, to) in
            [(0, 1), (0xff, 0x100), (0x1ff, 0x200), (0x00ff_ffff, 0x0100_0000), (5, 0x0102_0304_0506_0708)]
        {
            let (from, to): (u64, u64) = (from, to);
            consumer.file.write_all_at(&from.to_le_bytes(), RELEASED).expect("written");
            consumer.released[0] = from;
            // What stands there after each byte.
            let mut seen = from.to_le_bytes();
            for (place, byte) in to.to_le_bytes().into_iter().enumerate() {
                seen[place] = byte;
                assert!(u64::from_le_bytes(seen) <= to, "{from:#x} to {to:#x}");
            }
            consumer.release(Side::Main, to).expect("released");
            assert_eq!((word(&consumer), consumer.released[0]), (to, to));
        }
    }

    #[test]
    fn what_is_closed_is_copied_once() {
        let mut bytes = ring(3, &[3; 8]);
        bytes[328..336].copy_from_slice(&4u64.to_le_bytes());
        let mut consumer = consumer(&bytes);
        let [main, nested] = consumer.waiting().expect("counters");
        assert_eq!((main.clone(), nested), (3..4, 0..0), "it has one place");
        assert_eq!(consumer.percent(Side::Main, &main), 100);
        let mut packet = Vec::new();
        let head = consumer.packet(Side::Main, 3, &mut packet).expect("read").expect("a packet");
        assert_eq!((head.size, head.events_before), (head::SIZE + 8, 0));
        assert!(packet.len() >= head.size);
        assert!(consumer.packet(Side::Main, 4, &mut packet).expect("read").is_err());
        consumer.release(Side::Main, 4).expect("released");
        assert_eq!(consumer.waiting().expect("counters")[0], 4..4);
    }
}
