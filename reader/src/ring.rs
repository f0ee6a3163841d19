//! Ring files: the memory of a traced process, which outlives it. `docs/format-ring.md` specifies the format.
//!
//! A file is not trusted: it may be truncated, and written while it is read. It is read piece by piece at checked offsets, and a packet is
//! taken only if its header was the same before and after it was copied. A reader holds one packet at a time; for a ring that is being
//! overwritten, it holds all packets of one stream.

mod bytes;
mod call_order;
mod counters;
#[cfg(feature = "control")]
mod file;
mod header;
mod identity;
mod snapshot;
mod sub_buffers;

use crate::account::{Policy, StreamAccount};
use crate::error::ReadError;
use crate::fields::Fields;
use crate::source;
use call_order::first_look;
use header::Header;
use std::io;
use std::path::{Path, PathBuf};
use tracepoint_ring::channel::ring_offsets::{
    COUNTERS_SIZE, ENTRY_SIZE, HEADER_AND_IDENTITY, MAGIC, counters as counter_at, header as at,
};
use tracepoint_ring::channel::{HEADER_SIZE, PACKET_MAGIC, PacketHeader, PacketSlots, StreamKey, sequence_of};

pub use bytes::Bytes;
pub use counters::{EventCounters, StreamCounters};
#[cfg(feature = "control")]
pub(crate) use file::RingFile;
pub use identity::Identity;
pub use snapshot::StreamSnapshot;
#[cfg(test)]
pub(crate) use sub_buffers::tests::ring as test_ring;
pub use sub_buffers::{RingPacket, SubBuffer, SubBuffers};

/// The extension of ring files.
pub const RING_EXTENSION: &str = "ring";

/// Maximum size of a ring. A longer file without a magic is not searched for remains of a ring.
const MAX_SEARCHED: u64 = 4 << 30;
/// Maximum number of attempts to read a packet that is taken in the meantime.
const OLDEST_TRIES: u32 = 8;
/// More packets than any ring closes.
const MAX_CLOSED: u64 = u64::MAX / 2;

/// One of the two streams of a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The thread's events.
    Main,
    /// Events of signal handlers that interrupted a write to the main stream.
    Nested,
}

impl Side {
    /// Both streams.
    pub const ALL: [Self; 2] = [Self::Main, Self::Nested];

    /// The offset of the number of packets taken by the consumer.
    pub(crate) const fn released_at(self) -> u64 {
        (at::RELEASED + 8 * self.index()) as u64
    }

    /// 0 for the main stream, 1 for the nested one.
    pub(crate) const fn index(self) -> usize {
        match self {
            Self::Main => 0,
            Self::Nested => 1,
        }
    }
}

/// A ring file.
#[derive(Debug)]
pub struct Ring {
    path: PathBuf,
    bytes: Box<dyn Bytes>,
    header: Header,
    identity: Identity,
}

impl Ring {
    /// Opens a ring file; `None` if the process has not completed it yet.
    ///
    /// # Errors
    /// [`ReadError::Io`] if it cannot be read; [`ReadError::Ring`] if it is not a ring file, of an unknown version, cut short, or
    /// contradicts itself.
    pub fn open(path: &Path) -> Result<Option<Self>, ReadError> {
        let file = source::open_unlinked(path).map_err(|error| ReadError::io(path, error))?;
        Self::of(path, Box::new(file))
    }

    /// Reads the bytes of a ring file.
    ///
    /// # Errors
    /// As [`Ring::open`].
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Option<Self>, ReadError> {
        Self::of(Path::new("ring"), Box::new(bytes))
    }

    pub(crate) fn of(path: &Path, bytes: Box<dyn Bytes>) -> Result<Option<Self>, ReadError> {
        let wrong = |(offset, reason)| ReadError::Ring { path: path.to_owned(), offset, reason };
        let length = bytes.length().map_err(|error| ReadError::io(path, error))?;
        if length == 0 {
            return Ok(None);
        }
        // The owner stores the magic last.
        let mut magic = [0; MAGIC.len()];
        fill(path, bytes.as_ref(), &mut magic, 0)?;
        if magic == [0; MAGIC.len()] {
            if !was_used(bytes.as_ref(), length).map_err(|error| ReadError::io(path, error))? {
                return Ok(None);
            }
            // Its owner may have made and used it between the two looks.
            fill(path, bytes.as_ref(), &mut magic, 0)?;
        }
        if magic == [0; MAGIC.len()] {
            return Err(wrong((0, "its header is gone, and its packets cannot be found without it".to_owned())));
        }
        if magic != MAGIC {
            return Err(wrong((0, "this is not a ring file: it does not begin with `tp-ring`".to_owned())));
        }
        let mut page = vec![0; HEADER_AND_IDENTITY];
        fill(path, bytes.as_ref(), &mut page, 0)?;
        let header = Header::parse(Fields(&page), length).map_err(wrong)?;
        let identity = Identity::parse(Fields(&page)).map_err(wrong)?;
        Ok(Some(Self { path: path.to_owned(), bytes, header, identity }))
    }

    pub(crate) fn fill(&self, buffer: &mut [u8], offset: u64) -> Result<(), ReadError> {
        fill(&self.path, self.bytes.as_ref(), buffer, offset)
    }

    /// Path of the file; `ring` for bytes in memory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The number of its bytes; 0 if it is unknown.
    pub(crate) fn length(&self) -> u64 {
        self.bytes.length().unwrap_or(0)
    }

    /// The process that owns the ring.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Identifies the trace.
    pub fn uuid(&self) -> [u8; 16] {
        self.header.stream.uuid
    }

    /// The stream class: the channel's id in the trace.
    pub fn class(&self) -> u32 {
        self.header.stream.class
    }

    /// The behaviour of the channel when the ring is full.
    pub fn policy(&self) -> Policy {
        self.header.policy
    }

    /// The stream instance id of one of its streams.
    pub fn instance(&self, side: Side) -> u64 {
        self.stream(side).instance
    }

    /// Size of the sub-buffers of one of its streams, in bytes; 0 if it has none.
    pub fn sub_buffer_size(&self, side: Side) -> u64 {
        self.slots(side).size
    }

    /// The time at which the channel was opened, on the trace's clock.
    pub fn opened(&self) -> u64 {
        self.header.opened
    }

    /// One of its streams.
    pub(crate) fn stream(&self, side: Side) -> StreamKey {
        let instance = self.header.stream.instance + side.index() as u64;
        StreamKey { instance, ..self.header.stream }
    }

    /// The header of an empty packet of one of its streams, at `time`.
    pub(crate) fn empty_packet(&self, side: Side, time: u64) -> PacketHeader {
        PacketHeader::empty(self.stream(side), time)
    }

    /// The account of one of its streams, without the outcome of its packets.
    pub(crate) fn stream_account(&self, side: Side, recorded: u64, discarded: u64) -> StreamAccount {
        StreamAccount { instance: self.instance(side), recorded, discarded, ..StreamAccount::default() }
    }

    /// The sub-buffers of one of its streams.
    pub(crate) fn slots(&self, side: Side) -> PacketSlots {
        self.header.area(side).slots
    }

    /// True if it has only counters: those of threads without a ring.
    pub fn is_ringless(&self) -> bool {
        Side::ALL.iter().all(|side| self.slots(*side).count == 0)
    }

    /// The number of rings made by its channel so far, if this is the file of threads without a ring; 0 if it is not recorded.
    pub(crate) fn rings_made(&self) -> Result<u64, ReadError> {
        let mut made = [0; 8];
        self.fill(&mut made, 152)?;
        Ok(u64::from_le_bytes(made))
    }

    /// The current counters of one of its streams.
    ///
    /// # Errors
    /// [`ReadError::Io`] and [`ReadError::Ring`] if it cannot be read, or the counters are out of range.
    pub fn counters(&self, side: Side) -> Result<StreamCounters, ReadError> {
        let at = [at::MAIN_COUNTERS, at::NESTED_COUNTERS][side.index()] as u64;
        let mut bytes = [0; COUNTERS_SIZE];
        self.fill(&mut bytes, at)?;
        let counters = StreamCounters::parse(Fields(&bytes));
        if counters.closed > MAX_CLOSED {
            let reason = format!("{} closed packets are out of range", counters.closed);
            return Err(ReadError::Ring { path: self.path.clone(), offset: at + counter_at::CLOSED as u64, reason });
        }
        Ok(counters)
    }

    /// The number of packets of one of its streams taken by the consumer so far. The number comes from a file that may be damaged.
    ///
    /// # Errors
    /// [`ReadError::Io`] and [`ReadError::Ring`] if it cannot be read.
    pub(crate) fn released(&self, side: Side) -> Result<u64, ReadError> {
        let mut bytes = [0; 8];
        self.fill(&mut bytes, side.released_at())?;
        Ok(u64::from_le_bytes(bytes))
    }

    /// The begin time of the oldest packet that one of its streams holds and its consumer has not taken, on the trace's clock; `None` if no
    /// such packet has a record. Not applicable to a ring whose packets are overwritten.
    ///
    /// # Errors
    /// [`ReadError::Io`] and [`ReadError::Ring`] if it cannot be read, or changed during each attempt.
    pub(crate) fn oldest(&self, side: Side) -> Result<Option<u64>, ReadError> {
        let area = self.header.area(side);
        if area.slots.count == 0 {
            return Ok(None);
        }
        for _ in 0..OLDEST_TRIES {
            let (released, closed) = (self.released(side)?, self.counters(side)?.closed);
            let look = || {
                let mut bytes = [0; HEADER_SIZE];
                self.fill(&mut bytes, area.offset_of(released)).map(|()| PacketHeader::parse(&bytes))
            };
            let found = first_look(look, |head| head.magic == PACKET_MAGIC)?;
            let is_there = found.magic == PACKET_MAGIC && found.sequence == sequence_of(released);
            let packet = look()?;
            // The sub-buffer is reused only after `released` has increased.
            if self.released(side)? != released || released > closed || (released < closed && !is_there) {
                continue;
            }
            let has_records = released < closed || (is_there && packet.content_bits > 8 * HEADER_SIZE as u64);
            return Ok(has_records.then_some(packet.begin));
        }
        let reason = "the number of packets that were taken does not fit its packets".to_owned();
        Err(ReadError::Ring { path: self.path.clone(), offset: side.released_at(), reason })
    }

    /// True if no event has fired for it.
    pub(crate) fn is_unused(&self) -> Result<bool, ReadError> {
        let is_unwritten = |side| Ok::<_, ReadError>(self.counters(side)? == StreamCounters::default());
        let has_no_counts = self.account()?.iter().all(|counters| *counters == EventCounters::default());
        Ok(has_no_counts && is_unwritten(Side::Main)? && is_unwritten(Side::Nested)?)
    }

    /// The current counters of each event, indexed by its id.
    ///
    /// # Errors
    /// [`ReadError::Io`] and [`ReadError::Ring`] if it cannot be read.
    pub fn account(&self) -> Result<Vec<EventCounters>, ReadError> {
        let mut bytes = vec![0; self.header.events as usize * ENTRY_SIZE];
        self.fill(&mut bytes, self.header.account_offset)?;
        Ok(bytes.chunks_exact(ENTRY_SIZE).map(|entry| EventCounters::parse(Fields(entry))).collect())
    }

    /// The sub-buffers of one of its streams in the order of their packets, each in its state when the iterator reaches it. `counters` are those of
    /// the stream, read before.
    pub fn sub_buffers(&self, side: Side, counters: &StreamCounters) -> SubBuffers<'_> {
        SubBuffers::new(self, side, counters.closed.min(MAX_CLOSED))
    }
}

/// True if a file without a magic was a ring: its owner sets its length and allocates it first, and writes to the part after the identity
/// only when the header is complete.
fn was_used(bytes: &dyn Bytes, length: u64) -> io::Result<bool> {
    if length > MAX_SEARCHED {
        return Ok(true);
    }
    let mut part = vec![0; 64 << 10];
    let mut at = HEADER_AND_IDENTITY as u64;
    while at < length {
        let size = (length - at).min(part.len() as u64) as usize;
        bytes.fill(&mut part[..size], at)?;
        if part[..size].iter().any(|byte| *byte != 0) {
            return Ok(true);
        }
        at += size as u64;
    }
    Ok(false)
}

fn fill(path: &Path, bytes: &dyn Bytes, buffer: &mut [u8], offset: u64) -> Result<(), ReadError> {
    bytes.fill(buffer, offset).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => ReadError::Ring {
            path: path.to_owned(),
            offset,
            reason: format!(
                "the file ends within the {} bytes from here on: it was cut short; read it where the process made it, or \
                 copy it again",
                buffer.len()
            ),
        },
        _ => ReadError::io(path, error),
    })
}
