//! A dt file and its buffer, for one thread: the writer inside a trace object.

use crate::buffer::Buffer;
use crate::entry::{Entry, numbered};
use crate::error::Error;
use crate::header::{Header, Version};
use crate::slots::Slots;
use crate::storage::{FileStorage, Storage};
use std::process;

/// Maximum size of a buffer in bytes: writers and readers keep it in memory.
pub const MAX_LOGSIZE: u32 = 256 << 20;
/// Maximum size of a file in bytes, without its postambles: the limit of common file systems.
pub const MAX_FILE: u64 = 16 << 40;

/// The sizes of a dt file, and the layout of its entries.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct Layout {
    pub(crate) version: Version,
    pub(crate) logsize: u32,
    pub(crate) filesize: u32,
    pub(crate) full_size: bool,
}

impl Layout {
    /// A byte stream with a buffer of `logsize` bytes, and at most `filesize` buffers in the file.
    pub fn new(logsize: u32, filesize: u32) -> Self {
        Self { version: Version::ByteStream, logsize, filesize, full_size: false }
    }

    /// Sets the layout of entries in slots.
    pub fn version(mut self, version: Version) -> Self {
        self.version = version;
        self
    }

    /// Creates the file at its full size, with empty slots: its space on the medium is reserved, and postambles never move, so a kill
    /// cannot destroy written ones. For framed files only, where empty slots differ from written ones.
    pub fn full_size(mut self) -> Self {
        self.full_size = true;
        self
    }

    fn check(&self) -> Result<(), Error> {
        let least = self.version.frame_size() as u64 + 1;
        let within = |what, value, least, most| {
            if (least..=most).contains(&value) { Ok(()) } else { Err(Error::Limit { what, value, least, most }) }
        };
        within("logsize (bytes of a buffer)", u64::from(self.logsize), least, u64::from(MAX_LOGSIZE))?;
        within("filesize (buffers in the file)", u64::from(self.filesize), 1, i32::MAX as u64)?;
        let bytes = u64::from(self.logsize) * u64::from(self.filesize);
        within("logsize times filesize (bytes of the file)", bytes, 1, MAX_FILE)?;
        if self.version == Version::Framed && !self.logsize.is_multiple_of(4) {
            return Err(Error::Unaligned(self.logsize));
        }
        if self.full_size && self.version != Version::Framed {
            return Err(Error::FramedOnly("full_size"));
        }
        Ok(())
    }
}

/// Writes one dt file through one buffer; both are circular.
///
/// It is a [`TraceObject`](crate::TraceObject) without name and lock, for programs with their own registry and locking, or their own
/// [`Storage`]. Dropping it flushes and ignores errors; call [`flush`](Self::flush) to see them. In a forked child, dropping does not flush:
/// the file belongs to the parent.
///
/// A failed call changes nothing: an entry is accepted completely or not at all.
#[derive(Debug)]
pub struct DtWriter<S: Storage> {
    slots: Slots<S>,
    buffer: Buffer,
    /// The process that created it. A forked child has a copy of the buffer, and the same file.
    process: u32,
}

impl<S: Storage> DtWriter<S> {
    /// Creates an empty file: a header, and all slots if the layout has the [full size](Layout::full_size).
    ///
    /// # Errors
    ///
    /// [`Error::Limit`], [`Error::Unaligned`], [`Error::FramedOnly`] for invalid sizes; [`Error::Io`].
    pub fn create(storage: S, layout: Layout) -> Result<Self, Error> {
        layout.check()?;
        let Layout { version, logsize, filesize, full_size } = layout;
        let number_buffers = if full_size { filesize } else { 0 };
        let header = Header { version, buffer_size: logsize, number_buffers, last: None };
        let slots = Slots::create(storage, header, filesize)?;
        let buffer = Buffer::new(logsize as usize, version.frame_size(), slots.slot_offset());
        Ok(Self { slots, buffer, process: process::id() })
    }

    /// Traces an entry of scalars, made by [`pack!`](crate::pack). The original's `dtTrace`*n*.
    ///
    /// Copies its bytes. Each time the buffer is full, a slot is written.
    ///
    /// # Errors
    ///
    /// [`Error::EntryTooLarge`] if the entry does not fit into an empty buffer; [`Error::Io`] if the buffer was full and could not
    /// be written. The entry was then not accepted, and the buffer is unchanged.
    #[inline]
    pub fn trace<E: Entry>(&mut self, entry: E) -> Result<(), Error> {
        match self.buffer.take(E::SIZE) {
            Some(place) => {
                entry.write(place);
                Ok(())
            }
            None => self.trace_slowly(entry),
        }
    }

    numbered!(self, [&mut self]);

    /// Traces bytes as one entry; does nothing if there are none. The original's `dtTraceBuf`.
    ///
    /// # Errors
    ///
    /// The errors of [`trace`](Self::trace).
    #[inline]
    pub fn trace_buf(&mut self, entry: &[u8]) -> Result<(), Error> {
        match self.buffer.take(entry.len()) {
            Some(place) => {
                place.copy_from_slice(entry);
                Ok(())
            }
            None => self.trace_buf_slowly(entry),
        }
    }

    /// Flushes the buffer to its slot, which later entries continue, and with `postambles` also the postambles. The original's `dtFlushTraceObj`.
    ///
    /// Flushed postambles stay at the end of the file: a slot added there moves them. Other postambles are written only by a flush with
    /// `postambles`.
    ///
    /// # Errors
    ///
    /// [`Error::Io`]; the next flush retries.
    pub fn flush(&mut self, postambles: bool) -> Result<(), Error> {
        if self.buffer.len() > 0 {
            self.store()?;
        }
        if postambles { self.slots.write_postambles() } else { Ok(()) }
    }

    /// Flushes the buffer, and starts a new slot with the next entry even if this one is not full. Does nothing if the buffer is empty.
    ///
    /// # Errors
    ///
    /// [`Error::FramedOnly`] for a byte stream, where only the last slot can be partially full; the errors of [`flush`](Self::flush).
    pub fn end_slot(&mut self) -> Result<(), Error> {
        if self.slots.header().version() != Version::Framed {
            return Err(Error::FramedOnly("end_slot"));
        }
        if self.buffer.len() > 0 { self.end_buffer() } else { Ok(()) }
    }

    /// Writes `entry` as the only entry of the next slot, after the entries of the buffer.
    ///
    /// # Errors
    ///
    /// [`Error::FramedOnly`] for a byte stream, where only the last slot can be partially full; [`Error::EntryTooLarge`];
    /// [`Error::Io`]. The entry was then not accepted, and the slot is empty.
    pub fn put_slot(&mut self, entry: &[u8]) -> Result<(), Error> {
        self.end_slot()?;
        let most = self.buffer.capacity();
        if entry.len() > most {
            return Err(Error::EntryTooLarge { length: entry.len(), most });
        }
        if entry.len() == most {
            return self.fill(entry);
        }
        self.trace_buf(entry)?;
        self.end_slot().inspect_err(|_| self.buffer.truncate(0))
    }

    /// Writes a [tagged](crate::tagged) postamble to the file immediately, and replaces the previous one with this tag: the file has two copies,
    /// and the older one is overwritten, so a reader finds an intact one at any time. Writing the same contents twice makes both copies
    /// equal.
    ///
    /// It comes after the postambles that were appended before the first one with its tag, and may grow to twice its size; beyond that it moves to
    /// the end of the file.
    ///
    /// # Errors
    ///
    /// [`Error::FullSizeOnly`]; [`Error::Limit`] if it exceeds [`MAX_TAGGED`](crate::MAX_TAGGED); [`Error::Io`]: the previous one
    /// remains.
    pub fn put_postamble(&mut self, tag: [u8; 4], contents: &[u8]) -> Result<(), Error> {
        self.slots.put_postamble(tag, contents)
    }

    /// Reserves space in the file for a postamble with this tag of up to `most` bytes, so that [`put_postamble`](Self::put_postamble) succeeds
    /// on a full disk. The previous contents remain. If the space is too small, a new space of at least twice the size is added; the file
    /// keeps the smaller one as well.
    ///
    /// # Errors
    ///
    /// The errors of [`put_postamble`](Self::put_postamble).
    pub fn reserve_postamble(&mut self, tag: [u8; 4], most: usize) -> Result<(), Error> {
        self.slots.reserve_postamble(tag, most)
    }

    /// Adds `postamble` at the end of the list of postambles. The original's `dtAppendPostAmble`. The next [`flush`](Self::flush)
    /// with postambles writes it after the earlier ones, which are not touched.
    pub fn append_postamble(&mut self, postamble: impl Into<Vec<u8>>) {
        self.slots.postambles_mut().append(postamble.into());
    }

    /// Adds `postamble` at the beginning of the list of postambles. The original's `dtInsertPostAmble`. The next
    /// [`flush`](Self::flush) with postambles writes all of them again: a kill during that write can tear them.
    pub fn insert_postamble(&mut self, postamble: impl Into<Vec<u8>>) {
        self.slots.postambles_mut().insert(postamble.into());
    }

    /// The header currently in the file.
    pub fn header(&self) -> &Header {
        self.slots.header()
    }

    /// Current offset of the postambles in the file in bytes. The original's `dtPostAmbleLocation`.
    pub fn postamble_location(&self) -> u64 {
        self.slots.header().postamble_location()
    }

    /// Bytes of entries in the buffer, including flushed ones.
    pub fn buffered(&self) -> usize {
        self.buffer.len()
    }

    /// The storage.
    pub fn storage(&self) -> &S {
        self.slots.storage()
    }

    /// Accepts bytes that fill the buffer, and flushes it. If that fails, the bytes were not accepted.
    fn fill(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let before = self.buffer.len();
        self.buffer.fill(bytes);
        let outcome = self.end_buffer();
        if outcome.is_err() {
            self.buffer.truncate(before);
        }
        outcome
    }

    /// Writes the buffer to its slot.
    fn store(&mut self) -> Result<(), Error> {
        let (memory, used) = self.buffer.slot_mut();
        self.slots.store(memory, used)
    }

    /// Flushes the buffer, and continues with the next slot.
    fn end_buffer(&mut self) -> Result<(), Error> {
        self.store()?;
        self.slots.advance();
        self.buffer.clear(self.slots.slot_offset());
        Ok(())
    }

    /// Accepts an entry that fills the buffer, or does not fit into the rest of it.
    #[cold]
    #[inline(never)]
    fn trace_buf_slowly(&mut self, entry: &[u8]) -> Result<(), Error> {
        let (most, remaining) = (self.buffer.capacity(), self.buffer.remaining());
        if entry.len() > most {
            return Err(Error::EntryTooLarge { length: entry.len(), most });
        }
        let mut rest = entry;
        if entry.len() > remaining {
            match self.slots.header().version() {
                Version::ByteStream => {
                    let (first, others) = entry.split_at(remaining);
                    self.fill(first)?;
                    rest = others;
                }
                Version::Framed => self.end_buffer()?,
            }
        }
        if let Some(place) = self.buffer.take(rest.len()) {
            place.copy_from_slice(rest);
            return Ok(());
        }
        self.fill(rest)
    }

    #[cold]
    #[inline(never)]
    fn trace_slowly<E: Entry>(&mut self, entry: E) -> Result<(), Error> {
        let mut bytes = vec![0; E::SIZE];
        entry.write(&mut bytes);
        self.trace_buf(&bytes)
    }
}

impl DtWriter<FileStorage> {
    /// Names a file that was [begun](FileStorage::begin). Before, it is unnamed, and disappears with its writer. An existing file with that
    /// name is replaced if `replace` is set and no process is writing it.
    ///
    /// # Errors
    ///
    /// [`Error::InUse`] if a process is writing the file with that name, [`Error::Exists`] if it must not be replaced;
    /// [`Error::Io`].
    pub fn publish(&mut self, replace: bool) -> Result<(), Error> {
        self.slots.storage_mut().publish(replace)
    }
}

impl<S: Storage> Drop for DtWriter<S> {
    fn drop(&mut self) {
        if self.process == process::id() {
            let _ = self.flush(true);
        }
    }
}
