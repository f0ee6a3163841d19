//! The slots of the file, and the order of their writes. `docs/format-dt.md` shows why no kill between two writes makes a torn slot look
//! intact.
//!
//! ```text
//!             store: new bytes                   store: more bytes, same slot
//!  fresh ──────────────────────────▶ stored ◀───────────────┐
//!    ▲   A [cut the postambles off]    │  └─────────────────┘
//!    │   B header: k in progress       │    E the bytes behind the stored ones
//!    │   C the slot                    │    F its frame (framed files)
//!    │   D header: k, its size         │    G header: k, its size
//!    └────────── advance ──────────────┘
//! ```

use crate::error::Error;
use crate::header::{FRAME_SIZE, Header, LastBuffer, Version};
use crate::postambles::Postambles;
use crate::storage::Storage;
use crc32fast::Hasher;

/// Maximum number of zeros written to extend the file to the end of a new slot. A longer extension uses a separate call that sets the length, which
/// costs more than writing this many bytes.
const MAX_PADDING: usize = 4096;

/// The file of a writer, and the slot that belongs to its buffer.
#[derive(Debug)]
pub(crate) struct Slots<S> {
    storage: S,
    /// The header in the file.
    header: Header,
    filesize: u32,
    /// The slot that belongs to the buffer.
    slot: u32,
    /// Its used bytes according to the header in the file; 0 if fresh.
    stored: usize,
    /// The checksum of these bytes, and the frame that contains it.
    sum: Hasher,
    frame: [u8; FRAME_SIZE],
    postambles: Postambles,
}

impl<S: Storage> Slots<S> {
    /// Writes the header of an empty file: without slots, or with all of them unwritten.
    pub(crate) fn create(storage: S, header: Header, filesize: u32) -> Result<Self, Error> {
        let mut slots = Self {
            storage,
            header,
            filesize,
            slot: 0,
            stored: 0,
            sum: Hasher::new(),
            frame: [0; FRAME_SIZE],
            postambles: Postambles::default(),
        };
        if header.number_buffers > 0 {
            let length = header.postamble_location();
            slots.storage.allocate(length).map_err(|error| slots.failed("make room for all slots", error))?;
        }
        slots.write_header(header)?;
        Ok(slots)
    }

    pub(crate) fn header(&self) -> &Header {
        &self.header
    }

    pub(crate) fn storage_mut(&mut self) -> &mut S {
        &mut self.storage
    }

    pub(crate) fn storage(&self) -> &S {
        &self.storage
    }

    pub(crate) fn postambles_mut(&mut self) -> &mut Postambles {
        &mut self.postambles
    }

    /// Offset in the file of the slot that belongs to the buffer.
    pub(crate) fn slot_offset(&self) -> u64 {
        self.header.slot_offset(self.slot)
    }

    /// Moves on to the next slot for the following bytes.
    pub(crate) fn advance(&mut self) {
        self.slot = (self.slot + 1) % self.filesize;
        self.stored = 0;
        self.sum = Hasher::new();
    }

    /// Writes the first `used` bytes of the slot to the file, except those already there. `memory` is the complete slot; it begins with space
    /// for its frame, if it has one.
    pub(crate) fn store(&mut self, memory: &mut [u8], used: usize) -> Result<(), Error> {
        if used == self.stored {
            return Ok(());
        }
        let bytes = &mut memory[..used];
        let mut sum = self.sum.clone();
        let mut frame = self.frame;
        if self.header.version == Version::Framed {
            let (place, entries) = bytes.split_at_mut(FRAME_SIZE);
            sum.update(&entries[self.stored.saturating_sub(FRAME_SIZE)..]);
            frame[..4].copy_from_slice(&(entries.len() as u32).to_le_bytes());
            frame[4..].copy_from_slice(&sum.clone().finalize().to_le_bytes());
            place.copy_from_slice(&frame);
        }
        if self.stored == 0 {
            self.begin(memory, used)?;
        } else if let Err(error) = self.extend(bytes) {
            if self.header.version == Version::Framed {
                // The header in the file has the length of this frame. If even the frame cannot be written, a reader uses the
                // frame in the file, as long as the bytes after it are unchanged.
                let _ = self.storage.write_at(self.header.slot_offset(self.slot), &self.frame);
            }
            return Err(error);
        }
        (self.stored, self.sum, self.frame) = (used, sum, frame);
        Ok(())
    }

    /// Writes the postambles that are not in the file yet.
    pub(crate) fn write_postambles(&mut self) -> Result<(), Error> {
        self.postambles.write(&mut self.storage, self.header.postamble_location())
    }

    /// Writes a replaceable postamble.
    pub(crate) fn put_postamble(&mut self, tag: [u8; 4], contents: &[u8]) -> Result<(), Error> {
        self.full_size_for("put_postamble")?;
        self.postambles.put(&mut self.storage, self.header.postamble_location(), tag, contents)
    }

    /// Reserves space for a replaceable postamble.
    pub(crate) fn reserve_postamble(&mut self, tag: [u8; 4], most: usize) -> Result<(), Error> {
        self.full_size_for("reserve_postamble")?;
        self.postambles.reserve(&mut self.storage, self.header.postamble_location(), tag, most)
    }

    fn full_size_for(&self, call: &'static str) -> Result<(), Error> {
        if self.header.number_buffers < self.filesize { Err(Error::FullSizeOnly(call)) } else { Ok(()) }
    }

    /// Writes a new slot, or overwrites the slot with the oldest entries.
    fn begin(&mut self, memory: &mut [u8], used: usize) -> Result<(), Error> {
        if self.slot < self.header.number_buffers {
            return self.overwrite(self.header.number_buffers, &memory[..used], used);
        }
        let padding = &mut memory[used..];
        let written = if padding.len() <= MAX_PADDING {
            padding.fill(0);
            &*memory
        } else {
            &memory[..used]
        };
        let before = self.header;
        let displaces = self.postambles.are_in_file();
        if displaces {
            self.set_length(before.postamble_location())?; // A
            self.postambles.displaced();
        }
        let outcome = self.overwrite(self.slot + 1, written, used);
        if outcome.is_err() {
            // Undo. If this fails as well, the header marks the slot as in progress.
            let _ = self.set_length(before.postamble_location()).and_then(|()| self.write_header(before));
        }
        if displaces {
            // Ignore the result: the next flush with postambles retries, and returns the error.
            let _ = self.postambles.restore(&mut self.storage, self.header.postamble_location());
        }
        outcome
    }

    /// Writes `bytes`, of which the first `used` count.
    fn overwrite(&mut self, number_buffers: u32, bytes: &[u8], used: usize) -> Result<(), Error> {
        let grows = number_buffers > self.header.number_buffers;
        let header = Header { number_buffers, ..self.header };
        let at = |size| Header { last: Some(LastBuffer { index: self.slot, size }), ..header };
        let (in_progress, done) = (at(0), at(used as u32));
        self.write_header(in_progress)?; // B
        self.write_slot(0, bytes)?; // C
        if grows && bytes.len() < header.buffer_size as usize {
            self.set_length(header.postamble_location())?;
        }
        self.write_header(done) // D
    }

    /// Writes more of the last slot: its earlier bytes stay valid until the header has the new size.
    fn extend(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.write_slot(self.stored, &bytes[self.stored..])?; // E
        if self.header.version == Version::Framed {
            self.write_slot(0, &bytes[..FRAME_SIZE])?; // F
        }
        let last = Some(LastBuffer { index: self.slot, size: bytes.len() as u32 });
        self.write_header(Header { last, ..self.header }) // G
    }

    fn write_slot(&mut self, from: usize, bytes: &[u8]) -> Result<(), Error> {
        let offset = self.slot_offset() + from as u64;
        self.storage.write_at(offset, bytes).map_err(|error| self.failed("write a buffer", error))
    }

    fn write_header(&mut self, header: Header) -> Result<(), Error> {
        self.storage.write_at(0, &header.to_bytes()).map_err(|error| self.failed("write the header", error))?;
        self.header = header;
        Ok(())
    }

    fn set_length(&mut self, length: u64) -> Result<(), Error> {
        self.storage.set_length(length).map_err(|error| self.failed("change the file's length", error))
    }

    fn failed(&self, action: &'static str, error: std::io::Error) -> Error {
        Error::io(self.storage.path(), action, error)
    }
}
