//! Files of streams, and the thread that writes them.
//!
//! ```text
//!   state (hub) ── Job ──▶ thread ──▶ stream files, index files, metadata
//!        ◀──────── Done ───┘
//! ```
//!
//! Files are created by the state machine, so that a sender gets its answer, and handed to the [thread](thread), which alone writes them. Jobs are
//! done in the order in which they were given, over all streams: so a beacon is known to viewers after the packets before it, and a packet
//! after the metadata before it. A disk that stalls delays the thread and nothing else. The removal of a directory is the exception: it does not
//! wait behind a packet for which there is no room.
//!
//! A packet is written to the stream file, with those of the stream that wait behind it by one call, then their entries to the index file. After a kill
//! packets at the end have no entry, and [repair](repair) cuts them off. Nothing is synchronised to the disk before a stream is closed: what was written survives a killed
//! process, not a power cut.

mod file;
pub(crate) mod repair;
mod thread;

pub(crate) use file::{Files, Segment, bytes_below};
pub(crate) use thread::Storage;

use crate::memory::MemoryShare;
use std::path::PathBuf;
use tracepoint_wire::relay::Index;

/// The bytes of a packet, as a share of the memory limit.
#[derive(Debug)]
pub(crate) struct Packet {
    bytes: Vec<u8>,
    /// Where the packet begins in them: what is in front of it was needed on the way.
    start: usize,
    /// Zero bytes that follow them in the file.
    padding: u32,
    /// Returned when the packet is written or dropped.
    _memory: Option<MemoryShare>,
}

impl Packet {
    pub(crate) const fn new(bytes: Vec<u8>, padding: u32, memory: Option<MemoryShare>) -> Self {
        Self::behind(bytes, 0, padding, memory)
    }

    /// The packet that begins at `start`.
    pub(crate) const fn behind(bytes: Vec<u8>, start: usize, padding: u32, memory: Option<MemoryShare>) -> Self {
        Self { bytes, start, padding, _memory: memory }
    }

    /// Its bytes without padding.
    pub(crate) fn content(&self) -> &[u8] {
        &self.bytes[self.start..]
    }

    /// Its size in the file.
    pub(crate) fn size(&self) -> u64 {
        self.content().len() as u64 + u64::from(self.padding)
    }
}

/// A packet with its number in its stream.
#[derive(Debug)]
pub(crate) struct SequencedPacket {
    pub(crate) sequence: u64,
    pub(crate) packet: Packet,
    /// Its entry in the index, if it has one.
    pub(crate) index: Option<Index>,
}

/// What is to be done to the files of a stream.
#[derive(Debug)]
pub(crate) enum Job {
    /// The stream goes on in these files, from this packet on: those of the previous file whose `packet_number` is at least `from` are moved.
    Open { files: Files, from: Option<u64> },
    /// Appends a packet, and its entry in the index.
    Packet(SequencedPacket),
    /// Appends metadata.
    Metadata { packet: Packet },
    /// Passes a beacon on behind what was stored before.
    Beacon { time: u64 },
    /// Tells that what came before is stored: viewers may read packets up to this number.
    Release { upto: u64 },
    /// Tells that everything before it is done.
    Mark,
    /// Removes the index, which cannot be completed.
    Unindex,
    /// Removes the directory of a trace whose files are not written any more; `bytes` is what is expected to become free.
    Remove { directory: PathBuf, bytes: u64 },
    /// Closes the files.
    Close,
}

impl Job {
    /// The bytes that are written.
    fn size(&self) -> u64 {
        match self {
            Self::Packet(SequencedPacket { packet, .. }) | Self::Metadata { packet } => packet.size(),
            _ => 0,
        }
    }
}

/// What was done.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Done {
    /// The next files are open. The previous segment ends after so many entries and bytes.
    Opened { entries: u64, bytes: u64, moved: u64 },
    /// A packet of this size was stored, or (`None`) could not be. It has an index if it has a stream class.
    Packet { sequence: u64, size: Option<u64>, stream_class: Option<u64> },
    /// Metadata was stored.
    Metadata { bytes: u64 },
    /// What came before the mark is done.
    Marked,
    /// What came before the release is stored.
    Released { upto: u64 },
    /// What came before the beacon is stored.
    Beacon { time: u64 },
    /// The files are closed.
    Closed,
    /// A directory of which so many bytes were expected was removed, or was not, with what to say about that. Without its metadata nothing takes the
    /// rest for a trace: then it is gone.
    Removed { bytes: u64, is_gone: bool, failed: Option<String> },
    /// The disk is full, or writable again.
    Full(Option<String>),
}
