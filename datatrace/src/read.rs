//! Reads dt files: header, slots from the oldest on, entries, postambles.
//!
//! A file is hostile and may have been cut short: every length is checked before it is used. Damage is reported with offset
//! and reason, and the other slots remain readable. A file is read piece by piece, so that it may be larger than memory, and is not mapped. A
//! file that is being written may change during the reading: see [`DtReader::has_changed`].
//!
//! ```no_run
//! use datatrace::DtReader;
//!
//! let file = DtReader::open("ip_trace.dt".as_ref())?;
//! for slot in file.slots() {
//!     let slot = slot?;
//!     println!("slot {} at byte {}: {} bytes", slot.index(), slot.offset(), slot.bytes()?.len());
//! }
//! println!("{} bytes of postambles", file.postamble_size());
//! # Ok::<(), datatrace::ReadError>(())
//! ```

mod entries;
mod error;
mod postambles;
mod slots;
mod source;

pub use entries::{Entries, EntryBytes};
pub use error::ReadError;
pub use slots::{Slot, SlotPlace, Slots};

use crate::header::{HEADER_SIZE, Header, Version};
use source::Source;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// How many bytes of a file are in memory at a time.
pub(crate) const CHUNK: usize = 64 << 10;

/// An open dt file.
#[derive(Debug)]
pub struct DtReader {
    source: Source,
    path: PathBuf,
    length: u64,
    header: Header,
}

impl DtReader {
    /// Opens the dt file at `path`, and reads its header.
    ///
    /// # Errors
    ///
    /// [`ReadError::NotAFile`]; [`ReadError::Io`]; [`ReadError::Header`] if it is no dt file.
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        let (source, length) = Source::open(path).map_err(|error| ReadError::open(path, error))?;
        Self::new(source, path.to_owned(), length)
    }

    /// Reads the bytes of a dt file that is in memory.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open).
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self, ReadError> {
        let length = bytes.len() as u64;
        Self::new(Source::Memory(bytes), PathBuf::from("dt file"), length)
    }

    fn new(source: Source, path: PathBuf, length: u64) -> Result<Self, ReadError> {
        let header = read_header(&source, &path)?;
        Ok(Self { source, path, length, header })
    }

    /// Its header, as it was when the file was opened.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Its length in bytes, when it was opened.
    pub fn file_size(&self) -> u64 {
        self.length
    }

    /// Its slots from the oldest on: those that hold entries. The slot that was being overwritten, [`Header::in_progress`], is left
    /// out, and so are slots of a framed file that were never written. A slot that is damaged is an error, and the next ones follow.
    pub fn slots(&self) -> Slots<'_> {
        Slots::new(self)
    }

    /// The entries of a file whose entries all have `size` bytes, from the oldest on. In a byte stream that has wrapped, the first
    /// slot may begin within an entry: `skip` bytes are passed over there, as [`first_entry`](Self::first_entry) tells.
    ///
    /// # Panics
    ///
    /// If `size` is 0.
    pub fn entries(&self, size: usize, skip: u64) -> Entries<'_> {
        assert!(size > 0, "an entry has bytes");
        Entries::new(self, size, skip)
    }

    /// Where the first whole entry of the oldest slot begins, if all entries have `size` bytes: the last one ends with the stream. `None` in
    /// a byte stream that has wrapped and does not end with an entry for certain: its last slot is full, or is being overwritten.
    ///
    /// # Panics
    ///
    /// If `size` is 0.
    pub fn first_entry(&self, size: usize) -> Option<u64> {
        assert!(size > 0, "an entry has bytes");
        let (header, size) = (&self.header, size as u64);
        let slot = u64::from(header.buffer_size());
        let Some(last) = header.last().filter(|_| header.version() == Version::ByteStream && slot % size > 0) else {
            return Some(0);
        };
        let full = u64::from(header.number_buffers()) - 1;
        let used = u64::from(last.size);
        let skip = (full * slot + used) % size;
        // After a full slot the stream may go on within an entry, unless this is a first round of whole entries.
        let ends = used != slot || (u64::from(last.index) == full && skip == 0);
        (used > 0 && ends).then_some(skip)
    }

    /// Size of the postambles in bytes.
    pub fn postamble_size(&self) -> u64 {
        self.length.saturating_sub(self.header.postamble_location())
    }

    /// The bytes of the postambles, one after the other.
    pub fn postambles(&self) -> impl Read + '_ {
        Span { reader: self, next: self.header.postamble_location(), end: self.length }
    }

    /// Whether the header has changed since the file was opened: it is being written, and slots that were read since may mix entries of
    /// two rounds. The checksums of a framed file detect that.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open).
    pub fn has_changed(&self) -> Result<bool, ReadError> {
        Ok(read_header(&self.source, &self.path)? != self.header)
    }

    /// Its path, as it was given; `dt file` for bytes in memory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Fills `place` with the bytes at `offset`, or with fewer at the end of the file. Returns their number.
    pub(crate) fn read_at(&self, offset: u64, place: &mut [u8]) -> Result<usize, ReadError> {
        self.source.read_full(offset, place).map_err(|error| self.io(error))
    }

    fn io(&self, error: io::Error) -> ReadError {
        ReadError::io(&self.path, error)
    }
}

fn read_header(source: &Source, path: &Path) -> Result<Header, ReadError> {
    let mut bytes = [0; HEADER_SIZE];
    let there = source.read_full(0, &mut bytes).map_err(|error| ReadError::io(path, error))?;
    let wrong = |offset, reason| ReadError::Header { path: path.to_owned(), offset, reason };
    if there < HEADER_SIZE {
        return Err(wrong(there as u64, format!("the file ends in its header of {HEADER_SIZE} bytes")));
    }
    Header::from_bytes(&bytes).map_err(|error| wrong(error.offset, error.reason))
}

/// Bytes of the file from one offset to another, as a stream.
#[derive(Debug)]
pub(crate) struct Span<'a> {
    reader: &'a DtReader,
    next: u64,
    end: u64,
}

impl Read for Span<'_> {
    fn read(&mut self, place: &mut [u8]) -> io::Result<usize> {
        let most = self.end.saturating_sub(self.next).min(place.len() as u64) as usize;
        let there = self.reader.source.read_full(self.next, &mut place[..most])?;
        self.next += there as u64;
        Ok(there)
    }
}
