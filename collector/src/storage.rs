//! The files of streams, and the thread that writes them.
//!
//! ```text
//!   state (hub) ── Job ──▶ thread ──▶ stream files, index files, metadata
//!        ◀── JobResult ────┘
//! ```
//!
//! The state machine creates the files, so that the sender gets an answer, and hands them to the [thread](thread), which alone writes to them. The
//! thread runs jobs in the order in which they were queued, across all streams. So viewers see a beacon after the packets before it, and a packet
//! after the metadata before it. A disk that stalls delays only the thread. The removal of a directory is the exception to the order: it does not
//! wait behind a packet that finds no space.
//!
//! Packets of a stream that are queued together are written with one call, then their entries to the index file. After a kill the last packets may
//! have no entry, and [repair](repair) cuts them off. No data is synced to the disk: written data survives a killed process, but not a power failure.

mod file;
pub(crate) mod repair;
mod thread;

pub(crate) use file::{Files, Segment, bytes_below};
pub(crate) use thread::Storage;

use crate::memory::MemoryShare;
use std::path::PathBuf;
use tracepoint_wire::relay::Index;

/// The bytes of a packet, and the memory charged for them.
#[derive(Debug)]
pub(crate) struct Packet {
    bytes: Vec<u8>,
    /// Offset of the packet in `bytes`; the bytes before it were needed in transit only.
    start: usize,
    /// Number of zero bytes to append in the file.
    padding: u32,
    /// Released when the packet is written or dropped.
    _memory: Option<MemoryShare>,
}

impl Packet {
    pub(crate) const fn new(bytes: Vec<u8>, padding: u32, memory: Option<MemoryShare>) -> Self {
        Self::behind(bytes, 0, padding, memory)
    }

    /// A packet that begins at `start`.
    pub(crate) const fn behind(bytes: Vec<u8>, start: usize, padding: u32, memory: Option<MemoryShare>) -> Self {
        Self { bytes, start, padding, _memory: memory }
    }

    /// Returns the packet's bytes without padding.
    pub(crate) fn content(&self) -> &[u8] {
        &self.bytes[self.start..]
    }

    /// Returns the packet's size in the file.
    pub(crate) fn size(&self) -> u64 {
        self.content().len() as u64 + u64::from(self.padding)
    }
}

/// A packet with its number in its stream.
#[derive(Debug)]
pub(crate) struct SequencedPacket {
    pub(crate) sequence: u64,
    pub(crate) packet: Packet,
    /// Its index entry, if it has one.
    pub(crate) index: Option<Index>,
}

/// A job for the files of a stream.
#[derive(Debug)]
pub(crate) enum Job {
    /// Continues the stream in these files. Packets of the previous file whose `packet_number` is at least `from` are moved.
    Open { files: Files, from: Option<u64> },
    /// Appends a packet and its index entry.
    Packet(SequencedPacket),
    /// Appends metadata.
    Metadata { packet: Packet },
    /// Returns a beacon once everything before it is stored.
    Beacon { time: u64 },
    /// Reports that everything before it is stored: viewers may read packets up to this number.
    Release { upto: u64 },
    /// Reports that all jobs before it are done.
    Mark,
    /// Removes the index, which cannot be completed.
    Unindex,
    /// Removes the directory of a trace whose files are no longer written. `bytes` is the amount expected to become free.
    Remove { directory: PathBuf, bytes: u64 },
    /// Closes the files.
    Close,
}

impl Job {
    /// Returns the number of bytes that the job writes.
    fn size(&self) -> u64 {
        match self {
            Self::Packet(SequencedPacket { packet, .. }) | Self::Metadata { packet } => packet.size(),
            _ => 0,
        }
    }
}

/// The result of a job.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum JobResult {
    /// The next files are open. The previous segment ends after this many entries and bytes.
    Opened { entries: u64, bytes: u64, moved: u64 },
    /// A packet of this size was stored; `None` if it could not be. It has an index if it has a stream class.
    Packet { sequence: u64, size: Option<u64>, stream_class: Option<u64> },
    /// Metadata was stored.
    Metadata { bytes: u64 },
    /// All jobs before the mark are done.
    Marked,
    /// Everything before the release is stored.
    Released { upto: u64 },
    /// Everything before the beacon is stored.
    Beacon { time: u64 },
    /// The files are closed.
    Closed,
    /// A directory expected to free this many bytes was removed, or could not be, with an error message. `is_gone` is set once its metadata is
    /// removed: without metadata, no reader takes the rest for a trace.
    Removed { bytes: u64, is_gone: bool, failed: Option<String> },
    /// The disk is full, or writable again.
    Full(Option<String>),
}
