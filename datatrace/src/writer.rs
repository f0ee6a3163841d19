//! One dt file and its buffer, for one thread: what a trace object has inside.

use crate::buffer::Buffer;
use crate::entry::{Entry, numbered};
use crate::error::Error;
use crate::header::{Header, Version};
use crate::slots::Slots;
use crate::storage::{FileStorage, Storage};
use std::process;

/// The largest buffer, in bytes: it is in memory, and readers may want it there too.
pub const MAX_LOGSIZE: u32 = 256 << 20;
/// The largest file, in bytes, without its postambles: no common file system takes more.
pub const MAX_FILE: u64 = 16 << 40;

/// The sizes of a dt file, and how entries lie in it.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct Layout {
    pub(crate) version: Version,
    pub(crate) logsize: u32,
    pub(crate) filesize: u32,
    pub(crate) full_size: bool,
}

impl Layout {
    /// A byte stream through a buffer of `logsize` bytes, and at most `filesize` buffers in the file.
    pub fn new(logsize: u32, filesize: u32) -> Self {
        Self { version: Version::ByteStream, logsize, filesize, full_size: false }
    }

    /// Chooses how entries lie in slots.
    pub fn version(mut self, version: Version) -> Self {
        self.version = version;
        self
    }

    /// Makes the file at its full size at once, all its slots empty: its room on the medium is kept, and postambles never move,
    /// so that a kill cannot take those that were written. For framed files, whose empty slots can be told from written ones.
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
            return Err(Error::Words { logsize: self.logsize });
        }
        if self.full_size && self.version != Version::Framed {
            return Err(Error::FramedOnly { call: "full_size" });
        }
        Ok(())
    }
}

/// Writes one dt file through one buffer; both are circular.
///
/// This is a [`TraceObject`](crate::TraceObject) without its name, its lock and its place in the list: for a program that has both,
/// or writes to a [`Storage`] of its own. Dropping it flushes, and says nothing of failures; [`flush`](Self::flush) tells them.
/// In a forked child dropping it does not flush: the file is the parent's.
///
/// Every call that fails has changed nothing: an entry is taken whole, or not at all.
#[derive(Debug)]
pub struct DtWriter<S: Storage> {
    slots: Slots<S>,
    buffer: Buffer,
    /// The process that made it. A forked child has a copy of its buffer, and the same file.
    process: u32,
}

impl<S: Storage> DtWriter<S> {
    /// Makes an empty file: a header, and the slots too if they are asked for at once.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`], [`Error::Words`], [`Error::FramedOnly`] for sizes that cannot be; [`Error::Io`].
    pub fn create(storage: S, layout: Layout) -> Result<Self, Error> {
        layout.check()?;
        let Layout { version, logsize, filesize, full_size } = layout;
        let number_buffers = if full_size { filesize } else { 0 };
        let header = Header { version, buffer_size: logsize, number_buffers, last: None };
        let slots = Slots::create(storage, header, filesize)?;
        let buffer = Buffer::new(logsize as usize, version.frame_size(), slots.slot_offset());
        Ok(Self { slots, buffer, process: process::id() })
    }

    /// Traces the scalars that [`pack!`](crate::pack) made an entry of. The original's `dtTrace`*n*.
    ///
    /// Costs the copy of its bytes; every time the buffer is full, the writes of a slot.
    ///
    /// # Errors
    ///
    /// [`Error::EntryTooLarge`] if the entry does not fit into an empty buffer; [`Error::Io`] if the buffer was full and could not
    /// be written. The entry was not taken then; what was in the buffer is there still.
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

    /// Traces bytes that are in memory already as one entry; none of them is no entry. The original's `dtTraceBuf`.
    ///
    /// # Errors
    ///
    /// Those of [`trace`](Self::trace).
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

    /// Flushes what is in the buffer to its slot, which later entries continue; and the postambles, if `postambles`. The original's
    /// `dtFlushTraceObj`.
    ///
    /// Postambles that have been flushed stay at the end of the file: a slot that is added where they stand moves them.
    ///
    /// # Errors
    ///
    /// [`Error::Io`]; what could not be written is kept, and tried again by the next flush.
    pub fn flush(&mut self, postambles: bool) -> Result<(), Error> {
        if self.buffer.len() > 0 {
            self.store()?;
        }
        if postambles { self.slots.write_postambles() } else { Ok(()) }
    }

    /// Flushes the buffer, and begins the next slot with the next entry though this one is not full. Does nothing if it is empty.
    ///
    /// # Errors
    ///
    /// [`Error::FramedOnly`] for a byte stream, of which only the last slot can be part-full; those of [`flush`](Self::flush).
    pub fn end_slot(&mut self) -> Result<(), Error> {
        if self.slots.header().version() != Version::Framed {
            return Err(Error::FramedOnly { call: "end_slot" });
        }
        if self.buffer.len() > 0 { self.end_buffer() } else { Ok(()) }
    }

    /// Writes `entry` as the only one of the next slot, behind what is in the buffer.
    ///
    /// # Errors
    ///
    /// [`Error::FramedOnly`] for a byte stream, of which only the last slot can be part-full; [`Error::EntryTooLarge`];
    /// [`Error::Io`]. The entry was not taken then, and the slot that it was to have holds nothing.
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

    /// Puts a [tagged](crate::tagged) postamble into the file at once, in the place of the one with this tag that was put there
    /// before: there are two copies of it, of which the older one is overwritten. Whatever happens meanwhile, a reader finds a whole
    /// one. Whoever puts the same contents twice has two equal copies.
    ///
    /// It stands behind the postambles that were appended before the first with its tag, and has room to grow to twice its size;
    /// beyond that it moves to the end of the file.
    ///
    /// # Errors
    ///
    /// [`Error::FullSizeOnly`]; [`Error::Limit`] if it is longer than [`MAX_TAGGED`](crate::MAX_TAGGED) allows; [`Error::Io`]: the one
    /// that was there is there still.
    pub fn put_postamble(&mut self, tag: [u8; 4], contents: &[u8]) -> Result<(), Error> {
        self.slots.put_postamble(tag, contents)
    }

    /// Makes room in the file for a postamble with this tag of up to `most` bytes, so that [`put_postamble`](Self::put_postamble)
    /// needs none of a disk that is full then. What was put before is there still. Where there was room that is too small, there is at
    /// least twice as much then; the file keeps the smaller one, too.
    ///
    /// # Errors
    ///
    /// Those of [`put_postamble`](Self::put_postamble).
    pub fn reserve_postamble(&mut self, tag: [u8; 4], most: usize) -> Result<(), Error> {
        self.slots.reserve_postamble(tag, most)
    }

    /// Adds `postamble` at the end of the list of postambles. The original's `dtAppendPostAmble`. It is in the file after the next
    /// [`flush`](Self::flush) that asks for postambles, behind those that are there, which are not touched.
    pub fn append_postamble(&mut self, postamble: impl Into<Vec<u8>>) {
        self.slots.postambles_mut().append(postamble.into());
    }

    /// Adds `postamble` at the beginning of the list of postambles. The original's `dtInsertPostAmble`. The next
    /// [`flush`](Self::flush) that asks for postambles writes all of them again: a kill in that instant can tear them.
    pub fn insert_postamble(&mut self, postamble: impl Into<Vec<u8>>) {
        self.slots.postambles_mut().insert(postamble.into());
    }

    /// The header as it stands in the file now.
    pub fn header(&self) -> &Header {
        self.slots.header()
    }

    /// Where the postambles begin, in bytes from the start of the file as it is now. The original's `dtPostAmbleLocation`.
    pub fn postamble_location(&self) -> u64 {
        self.slots.header().postamble_location()
    }

    /// Entries' bytes that are in the buffer, those included that have been flushed.
    pub fn buffered(&self) -> usize {
        self.buffer.len()
    }

    /// Where the bytes go.
    pub fn storage(&self) -> &S {
        self.slots.storage()
    }

    /// Takes an entry, or the part of one, that fills the buffer, and flushes it. If that fails, the bytes were not taken.
    fn fill(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let before = self.buffer.len();
        self.buffer.fill(bytes);
        let outcome = self.end_buffer();
        if outcome.is_err() {
            self.buffer.truncate(before);
        }
        outcome
    }

    /// Brings the buffer to its slot.
    fn store(&mut self) -> Result<(), Error> {
        let (memory, used) = self.buffer.slot_mut();
        self.slots.store(memory, used)
    }

    /// Flushes the buffer, and goes on to the next slot.
    fn end_buffer(&mut self) -> Result<(), Error> {
        self.store()?;
        self.slots.advance();
        self.buffer.clear(self.slots.slot_offset());
        Ok(())
    }

    /// An entry that fills the buffer, or does not fit into what is left of it.
    #[cold]
    #[inline(never)]
    fn trace_buf_slowly(&mut self, entry: &[u8]) -> Result<(), Error> {
        let (most, room) = (self.buffer.capacity(), self.buffer.room());
        if entry.len() > most {
            return Err(Error::EntryTooLarge { length: entry.len(), most });
        }
        let mut rest = entry;
        if entry.len() > room {
            match self.slots.header().version() {
                Version::ByteStream => {
                    let (first, others) = entry.split_at(room);
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
    /// Gives a file that was [begun](FileStorage::begin) its name: until then nobody finds it, and it vanishes with its writer. A file of
    /// that name that nobody is writing is replaced if `replace` says so.
    ///
    /// # Errors
    ///
    /// [`Error::InUse`] if somebody is writing the file that has the name, [`Error::Exists`] if it is not to be replaced;
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
