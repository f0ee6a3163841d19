//! Ring files: the memory of a traced process, which outlives it. `docs/format-ring.md` is the format.
//!
//! A file is hostile, may have been cut short, and may be written to while it is read: it is read piece by piece at
//! offsets that were checked, and a packet is taken only if it was the same before and after it was copied. A reader holds
//! one packet at a time, or, of a ring that is being overwritten, all of one stream.

mod bytes;
mod chase;
mod consumer;
mod counters;
pub(crate) mod head;
mod header;
mod identity;
mod page;
mod places;

use crate::account::Policy;
use crate::error::ReadError;
use crate::source;
use bytes::Bytes;
use header::{ENTRY_SIZE, Header, MAGIC};
use page::Page;
use std::io;
use std::path::{Path, PathBuf};

pub use chase::Chased;
pub(crate) use consumer::end_at;
pub use consumer::{PacketHead, RingConsumer};
pub use counters::{EventCounters, REASONS, StreamCounters};
pub use identity::Identity;
pub use places::{Place, Places, RingPacket};

/// How the names of ring files end, after a dot.
pub const RING_EXTENSION: &str = "ring";

/// How many bytes header and identity take.
const HEADER_AND_IDENTITY: usize = 4096;
/// No ring closes as many packets.
const MAX_CLOSED: u64 = u64::MAX / 2;

/// One of the two streams of a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The thread's events.
    Main,
    /// Events that found the main stream in use: those of signal handlers that interrupt a write.
    Nested,
}

impl Side {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Main, Self::Nested];

    /// Which of the two.
    const fn index(self) -> usize {
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
    /// Opens a ring file; `None` if the process had not made it a ring yet.
    ///
    /// # Errors
    /// [`ReadError::Io`] if it cannot be read; [`ReadError::Ring`] if it is no ring, of a version that is not understood, cut
    /// short, or contradicts itself.
    pub fn open(path: &Path) -> Result<Option<Self>, ReadError> {
        let file = source::open(path).map_err(|error| ReadError::io(path, error))?;
        Self::of(path, Box::new(file))
    }

    /// The same with the bytes of a ring file.
    ///
    /// # Errors
    /// As [`Ring::open`].
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Option<Self>, ReadError> {
        Self::of(Path::new("ring"), Box::new(bytes))
    }

    fn of(path: &Path, bytes: Box<dyn Bytes>) -> Result<Option<Self>, ReadError> {
        let wrong = |(offset, reason)| ReadError::Ring { path: path.to_owned(), offset, reason };
        let length = bytes.length().map_err(|error| ReadError::io(path, error))?;
        if length == 0 {
            return Ok(None);
        }
        // The magic is stored last, so it is looked at first.
        let mut magic = [0; MAGIC.len()];
        fill(path, bytes.as_ref(), &mut magic, 0)?;
        if magic == [0; MAGIC.len()] {
            return Ok(None);
        }
        if magic != MAGIC {
            return Err(wrong((0, "this is no ring file: those begin with `tp-ring`".to_owned())));
        }
        let mut page = vec![0; HEADER_AND_IDENTITY];
        fill(path, bytes.as_ref(), &mut page, 0)?;
        let header = Header::parse(Page(&page), length).map_err(wrong)?;
        let identity = Identity::parse(Page(&page)).map_err(wrong)?;
        Ok(Some(Self { path: path.to_owned(), bytes, header, identity }))
    }

    fn fill(&self, buffer: &mut [u8], offset: u64) -> Result<(), ReadError> {
        fill(&self.path, self.bytes.as_ref(), buffer, offset)
    }

    /// The file; `ring` for bytes in memory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whose ring it is.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Identifies the trace.
    pub fn uuid(&self) -> [u8; 16] {
        self.header.uuid
    }

    /// The stream class: the channel's id in the trace.
    pub fn class(&self) -> u32 {
        self.header.class
    }

    /// What the channel does when the ring is full.
    pub fn policy(&self) -> Policy {
        self.header.policy
    }

    /// The stream instance id of one of its streams.
    pub fn instance(&self, side: Side) -> u64 {
        self.header.instance + u64::from(side == Side::Nested)
    }

    /// The size of a packet's place in one of its streams, in bytes; 0 where there is none.
    pub fn place_size(&self, side: Side) -> u64 {
        self.header.places(side).size
    }

    /// When the channel was opened, on the trace's clock.
    pub fn opened(&self) -> u64 {
        self.header.opened
    }

    /// Whether it has counters only: those of the threads without a ring.
    pub fn is_orphans(&self) -> bool {
        Side::ALL.iter().all(|side| self.header.places(*side).count == 0)
    }

    /// What was counted of one of its streams, as it is now.
    ///
    /// # Errors
    /// [`ReadError::Io`] and [`ReadError::Ring`] if it cannot be read any more, or is beyond all reason.
    pub fn counters(&self, side: Side) -> Result<StreamCounters, ReadError> {
        let at = if side == Side::Main { 320 } else { 384 };
        let mut bytes = [0; StreamCounters::SIZE];
        self.fill(&mut bytes, at)?;
        let counters = StreamCounters::parse(Page(&bytes));
        if counters.closed > MAX_CLOSED {
            let reason = format!("{} closed packets are more than there can be", counters.closed);
            return Err(ReadError::Ring { path: self.path.clone(), offset: at + 8, reason });
        }
        Ok(counters)
    }

    /// What was counted of each event, by its id, as it is now.
    ///
    /// # Errors
    /// [`ReadError::Io`] and [`ReadError::Ring`] if it cannot be read any more.
    pub fn account(&self) -> Result<Vec<EventCounters>, ReadError> {
        let mut bytes = vec![0; (self.header.events * ENTRY_SIZE) as usize];
        self.fill(&mut bytes, self.header.account_offset)?;
        Ok(bytes.chunks_exact(ENTRY_SIZE as usize).map(|entry| EventCounters::parse(Page(entry))).collect())
    }

    /// The places of one of its streams, in the order of their packets, each as it is when it is reached. `counters` are the
    /// stream's own, read before.
    pub fn places(&self, side: Side, counters: &StreamCounters) -> Places<'_> {
        Places::new(self, side, counters.closed.min(MAX_CLOSED))
    }
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
