//! Reads dt files: header, slots starting with the oldest, entries, postambles.
//!
//! A file may be malicious or truncated: every length is checked before it is used. Damage is reported with offset
//! and reason, and the other slots remain readable. A file is read piece by piece, not mapped, so that it may be larger than memory. A
//! file that is being written may change while it is read: see [`DtReader::has_changed`].
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

/// Maximum number of bytes of a file in memory at a time.
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
    /// [`ReadError::NotAFile`]; [`ReadError::Io`]; [`ReadError::Header`] if it is not a dt file.
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        let (source, length) = Source::open(path).map_err(|error| ReadError::open(path, error))?;
        Self::new(source, path.to_owned(), length)
    }

    /// Reads a dt file in memory.
    ///
    /// # Errors
    ///
    /// The same as for [`open`](Self::open).
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self, ReadError> {
        let length = bytes.len() as u64;
        Self::new(Source::Memory(bytes), PathBuf::from("dt file"), length)
    }

    fn new(source: Source, path: PathBuf, length: u64) -> Result<Self, ReadError> {
        let header = read_header(&source, &path)?;
        Ok(Self { source, path, length, header })
    }

    /// Its header at the time of opening.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Its length in bytes at the time of opening.
    pub fn file_size(&self) -> u64 {
        self.length
    }

    /// Its slots with entries, oldest first. The slot that was being overwritten, [`Header::in_progress`], is omitted,
    /// and so are slots of a framed file that were never written. A damaged slot is an error, and iteration continues with the next one.
    pub fn slots(&self) -> Slots<'_> {
        Slots::new(self)
    }

    /// The entries of a file whose entries all have `size` bytes, oldest first. In a byte stream that has wrapped, the first
    /// slot may begin inside an entry: `skip` bytes are skipped there; [`first_entry`](Self::first_entry) returns that number.
    ///
    /// # Panics
    ///
    /// If `size` is 0.
    pub fn entries(&self, size: usize, skip: u64) -> Entries<'_> {
        assert!(size > 0, "an entry has bytes");
        Entries::new(self, size, skip)
    }

    /// Offset of the first complete entry in the oldest slot, if all entries have `size` bytes: the last entry ends with the stream. `None` for
    /// a byte stream that has wrapped if it may not end with a complete entry: its last slot is full, or is being overwritten.
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
        // After a full slot the stream may continue inside an entry, unless this is a first round of complete entries.
        let ends = used != slot || (u64::from(last.index) == full && skip == 0);
        (used > 0 && ends).then_some(skip)
    }

    /// Size of the postambles in bytes.
    pub fn postamble_size(&self) -> u64 {
        self.length.saturating_sub(self.header.postamble_location())
    }

    /// The bytes of all postambles in sequence.
    pub fn postambles(&self) -> impl Read + '_ {
        Span { reader: self, next: self.header.postamble_location(), end: self.length }
    }

    /// Returns whether the header has changed since the file was opened. The file is then being written, and slots read since may mix entries of
    /// two rounds. The checksums of a framed file detect that.
    ///
    /// # Errors
    ///
    /// The same as for [`open`](Self::open).
    pub fn has_changed(&self) -> Result<bool, ReadError> {
        Ok(read_header(&self.source, &self.path)? != self.header)
    }

    /// Its path as given; `dt file` for bytes in memory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Fills `place` with the bytes at `offset`. At the end of the file there may be fewer. Returns their number.
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

/// A range of bytes of the file, as a stream.
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
