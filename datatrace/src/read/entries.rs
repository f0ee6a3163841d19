//! Entries of one size, oldest first.

use super::{CHUNK, DtReader, ReadError, Slot, Slots, Span};
use crate::header::Version;
use std::io::{self, BufReader, Read};

/// The bytes of one entry.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EntryBytes {
    /// The slot in which it begins.
    pub slot: u32,
    /// Its offset in the file, in bytes.
    pub offset: u64,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// Iterates over the entries of a dt file. A damaged slot is returned as an error in its place; entries that extend into it are omitted.
#[derive(Debug)]
pub struct Entries<'a> {
    reader: &'a DtReader,
    slots: Slots<'a>,
    size: usize,
    skip: u64,
    open: Option<Open<'a>>,
    /// The first bytes of an incomplete entry, and the position of the next ones in the stream of all slots.
    part: Option<(EntryBytes, u64)>,
}

/// The slot that is being read.
#[derive(Debug)]
struct Open<'a> {
    index: u32,
    bytes: BufReader<Span<'a>>,
    /// Offset of the next byte in the file.
    offset: u64,
    left: u64,
    /// The end of the slot in the stream of all slots.
    end: u64,
}

impl<'a> Entries<'a> {
    pub(super) fn new(reader: &'a DtReader, size: usize, skip: u64) -> Self {
        Self { reader, slots: reader.slots(), size, skip, open: None, part: None }
    }

    /// Number of bytes at the end that are not a complete entry: the entry was truncated, or entries have another size.
    pub fn rest(&self) -> usize {
        self.part.as_ref().map_or(0, |(part, _)| part.bytes.len())
    }

    fn enter(&mut self, slot: &Slot<'a>) -> io::Result<()> {
        let length = u64::from(slot.len());
        let mut open = Open {
            index: slot.index(),
            bytes: BufReader::with_capacity(CHUNK.min(slot.len() as usize), slot.span()),
            offset: slot.offset(),
            left: length,
            end: 0,
        };
        if self.reader.header().version() == Version::ByteStream {
            let begin = self.place(slot.index());
            open.end = begin + length;
            if self.part.as_ref().is_none_or(|(_, next)| *next != begin) {
                self.part = None;
                let skip = to_next_entry(begin, self.skip, self.size as u64).min(length);
                io::copy(&mut open.bytes.by_ref().take(skip), &mut io::sink())?;
                open.offset += skip;
                open.left -= skip;
            }
        }
        self.open = Some(open);
        Ok(())
    }

    /// The begin of a slot in the stream of all slots, oldest first.
    fn place(&self, index: u32) -> u64 {
        let header = self.reader.header();
        let number = u64::from(header.number_buffers());
        let oldest = u64::from(header.oldest().unwrap_or(0));
        (u64::from(index) + number - oldest) % number * u64::from(header.buffer_size())
    }

    /// Reads the next entry, or the part of it in the open slot.
    fn read(&mut self, open: &mut Open) -> io::Result<EntryBytes> {
        let fresh = || EntryBytes { slot: open.index, offset: open.offset, bytes: Vec::new() };
        let mut entry = self.part.take().map_or_else(fresh, |(part, _)| part);
        let before = entry.bytes.len();
        let more = open.left.min((self.size - before) as u64);
        let there = open.bytes.by_ref().take(more).read_to_end(&mut entry.bytes)? as u64;
        if there < more {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the file has been cut since it was opened"));
        }
        open.left -= more;
        open.offset += more;
        Ok(entry)
    }
}

/// Number of bytes from `begin` to the next entry. Entries begin at `skip`, and every `size` bytes after it.
fn to_next_entry(begin: u64, skip: u64, size: u64) -> u64 {
    match skip.checked_sub(begin) {
        Some(before) => before,
        None => (size - (begin - skip) % size) % size,
    }
}

impl Iterator for Entries<'_> {
    type Item = Result<EntryBytes, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let Some(mut open) = self.open.take_if(|open| open.left > 0) else {
                match self.slots.next()? {
                    Ok(slot) => match self.enter(&slot) {
                        Ok(()) => continue,
                        Err(error) => return Some(Err(self.reader.io(error))),
                    },
                    Err(damage) => {
                        self.part = None;
                        return Some(Err(damage));
                    }
                }
            };
            let entry = match self.read(&mut open) {
                Ok(entry) => entry,
                Err(error) => return Some(Err(self.reader.io(error))),
            };
            if entry.bytes.len() == self.size {
                self.open = Some(open);
                return Some(Ok(entry));
            }
            if self.reader.header().version() == Version::Framed {
                let reason = format!("its last {} bytes are not an entry of {} bytes", entry.bytes.len(), self.size);
                return Some(Err(self.reader.damaged(entry.slot, entry.offset, reason)));
            }
            self.part = Some((entry, open.end));
        }
    }
}
