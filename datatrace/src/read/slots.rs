//! The slots of a dt file, oldest first.

use super::{CHUNK, DtReader, ReadError, Span};
use crate::header::{FRAME_SIZE, Version};
use crc32fast::Hasher;
use std::io::Read;

/// A slot that holds entries.
#[derive(Debug)]
pub struct Slot<'a> {
    reader: &'a DtReader,
    place: SlotPlace,
}

/// The place of a slot's entries when the slots were listed, for a later call of [`DtReader::bytes_at`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotPlace {
    index: u32,
    offset: u64,
    length: u32,
    checksum: Option<u32>,
}

impl<'a> Slot<'a> {
    /// Its number in the file.
    pub fn index(&self) -> u32 {
        self.place.index
    }

    /// Offset of its entries in the file, in bytes.
    pub fn offset(&self) -> u64 {
        self.place.offset
    }

    /// Size of its entries in bytes. Never 0.
    #[allow(clippy::len_without_is_empty)] // No slot is empty.
    pub fn len(&self) -> u32 {
        self.place.length
    }

    /// Its place, independent of the reader.
    pub fn place(&self) -> SlotPlace {
        self.place
    }

    /// Its entries' bytes as a stream.
    pub fn reader(&self) -> impl Read + use<'a> {
        self.span()
    }

    pub(super) fn span(&self) -> Span<'a> {
        Span { reader: self.reader, next: self.offset(), end: self.offset() + u64::from(self.len()) }
    }

    /// Its entries' bytes in memory. [`Self::reader`] reads them as a stream.
    ///
    /// # Errors
    ///
    /// [`ReadError::Io`]; [`ReadError::Damaged`] if the file has been truncated since it was opened.
    pub fn bytes(&self) -> Result<Vec<u8>, ReadError> {
        let mut bytes = vec![0; self.len() as usize];
        let there = self.reader.read_at(self.offset(), &mut bytes)?;
        if there < bytes.len() {
            return Err(self.reader.damaged(
                self.index(),
                self.offset() + there as u64,
                "the file ends here now".into(),
            ));
        }
        Ok(bytes)
    }
}

/// Iterates over the slots of a dt file that hold entries, oldest first. A damaged slot is returned as an error in its place.
#[derive(Debug)]
pub struct Slots<'a> {
    reader: &'a DtReader,
    /// Number of slots visited.
    done: u64,
}

impl<'a> Slots<'a> {
    pub(super) fn new(reader: &'a DtReader) -> Self {
        Self { reader, done: 0 }
    }
}

impl<'a> Iterator for Slots<'a> {
    type Item = Result<Slot<'a>, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        let header = self.reader.header();
        let number = u64::from(header.number_buffers());
        let oldest = u64::from(header.oldest()?);
        while self.done < number {
            let index = ((oldest + self.done) % number) as u32;
            self.done += 1;
            if header.in_progress() == Some(index) {
                continue;
            }
            if header.slot_offset(index) >= self.reader.length {
                // Report this slot and all following ones together.
                let end = if u64::from(index) >= oldest { number } else { oldest };
                self.done += end - 1 - u64::from(index);
                return Some(Err(self.reader.missing(index, end)));
            }
            if let Some(slot) = self.reader.slot(index).transpose() {
                return Some(slot);
            }
        }
        None
    }
}

impl DtReader {
    /// The entries' bytes of a slot that was listed before; `None` if they are missing, or have changed according to the checksum of a
    /// framed file.
    ///
    /// # Errors
    ///
    /// [`ReadError::Io`]; [`ReadError::Damaged`] if the file has been truncated since it was opened.
    pub fn bytes_at(&self, place: &SlotPlace) -> Result<Option<Vec<u8>>, ReadError> {
        // Allocate no memory for bytes beyond the end of the file.
        if place.offset + u64::from(place.length) > self.length {
            return Ok(None);
        }
        let mut bytes = vec![0; place.length as usize];
        let there = self.read_at(place.offset, &mut bytes)?;
        if there < bytes.len() {
            let end = place.offset + there as u64;
            let reason =
                format!("the file ends after {there} of {} bytes: it was cut off since it was opened", bytes.len());
            return Err(self.damaged(place.index, end, reason));
        }
        let same = place.checksum.is_none_or(|checksum| crc32fast::hash(&bytes) == checksum);
        Ok(same.then_some(bytes))
    }

    /// Slot `index`, if at least one of its bytes is in the file; `None` if it was never written.
    fn slot(&self, index: u32) -> Result<Option<Slot<'_>>, ReadError> {
        match self.header.version() {
            Version::ByteStream => self.stream_slot(index).map(Some),
            Version::Framed => self.framed_slot(index),
        }
    }

    fn stream_slot(&self, index: u32) -> Result<Slot<'_>, ReadError> {
        let last = self.header.last().filter(|last| last.index == index);
        let length = last.map_or(self.header.buffer_size(), |last| last.size);
        let offset = self.header.slot_offset(index);
        if offset + u64::from(length) > self.length {
            let there = self.length - offset;
            return Err(self.damaged(index, self.length, format!("the file ends after {there} of {length} bytes")));
        }
        Ok(Slot { reader: self, place: SlotPlace { index, offset, length, checksum: None } })
    }

    fn framed_slot(&self, index: u32) -> Result<Option<Slot<'_>>, ReadError> {
        let start = self.header.slot_offset(index);
        let mut frame = [0; FRAME_SIZE];
        let there = self.source.read_full(start, &mut frame).map_err(|error| self.io(error))?;
        if there < FRAME_SIZE {
            let reason = format!("the file ends after {there} of {FRAME_SIZE} bytes of the slot's frame");
            return Err(self.damaged(index, self.length, reason));
        }
        let word = |at: usize| u32::from_le_bytes([frame[at], frame[at + 1], frame[at + 2], frame[at + 3]]);
        let (length, checksum) = (word(0), word(4));
        let last = self.header.last().filter(|last| last.index == index).map(|last| last.size - FRAME_SIZE as u32);
        if last.is_none() && (length, checksum) == (0, 0) {
            return Ok(None);
        }
        // While a slot is continued, its frame is written before the header: the checksum belongs to one of the two lengths.
        let lengths = [last.unwrap_or(length), length];
        let offset = start + FRAME_SIZE as u64;
        for length in lengths.into_iter().take(if last.is_none_or(|last| last == length) { 1 } else { 2 }) {
            if self.agrees(offset, length, checksum)? {
                let place = SlotPlace { index, offset, length, checksum: Some(checksum) };
                return Ok(Some(Slot { reader: self, place }));
            }
        }
        let most = self.header.buffer_size() - FRAME_SIZE as u32;
        let reason = if length == 0 || length > most {
            format!("its frame tells {length} bytes; it must be from 1 to {most}")
        } else if offset + u64::from(length) > self.length {
            format!("the file ends before the {length} bytes that its frame tells")
        } else {
            format!("its {length} bytes do not have the checksum {checksum:#010x} that its frame tells")
        };
        Err(self.damaged(index, start, reason))
    }

    /// Returns whether the `length` bytes at `offset` have this checksum.
    fn agrees(&self, offset: u64, length: u32, checksum: u32) -> Result<bool, ReadError> {
        let most = self.header.buffer_size() - FRAME_SIZE as u32;
        if length == 0 || length > most || offset + u64::from(length) > self.length {
            return Ok(false);
        }
        let mut sum = Hasher::new();
        let mut span = Span { reader: self, next: offset, end: offset + u64::from(length) };
        let mut chunk = vec![0; CHUNK.min(length as usize)];
        loop {
            match span.read(&mut chunk).map_err(|error| self.io(error))? {
                0 => return Ok(span.next == span.end && sum.finalize() == checksum),
                there => sum.update(&chunk[..there]),
            }
        }
    }

    fn missing(&self, first: u32, end: u64) -> ReadError {
        let last = end - 1;
        let which = if u64::from(first) == last { "it is".into() } else { format!("it and all to slot {last} are") };
        self.damaged(first, self.length, format!("{which} missing: the file ends here"))
    }

    pub(super) fn damaged(&self, slot: u32, offset: u64, reason: String) -> ReadError {
        ReadError::Damaged { path: self.path().to_owned(), slot, offset, reason }
    }
}
