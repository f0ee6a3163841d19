//! A postamble that can be replaced: room for two copies of it, of which the older one is overwritten.
//!
//! ```text
//!   tagged "room": tag, most │ copy 0: tagged, number, contents … │ copy 1: tagged, number, contents …
//! ```
//!
//! The head in front is written once. A copy begins with its number, which rises by one each time; of two whole copies the one with the
//! larger number counts. A copy that was torn by a kill has no valid checksum, and the other one is whole.

use crate::error::Error;
use crate::storage::Storage;
use crate::tagged::{MAX_TAGGED, TAGGED_HEAD, tagged};

/// The tag of the head.
pub(crate) const ROOM_TAG: [u8; 4] = *b"room";
/// Bytes of the head: those of any tagged postamble, then tag and most.
pub(crate) const ROOM_HEAD: usize = TAGGED_HEAD + 8;
/// Bytes in front of the contents of a copy: those of any tagged postamble, then its number.
pub(crate) const COPY_HEAD: usize = TAGGED_HEAD + NUMBER;
/// Bytes of a copy's number.
pub(crate) const NUMBER: usize = 8;
/// The least contents that there is room for, in bytes.
const LEAST: usize = 1 << 10;

/// The most contents that there can be room for, in bytes.
const LIMIT: usize = MAX_TAGGED as usize - NUMBER;

/// What is in the file, and which copy is the next to be overwritten.
#[derive(Debug)]
pub(crate) struct Room {
    tag: [u8; 4],
    most: usize,
    /// The number of the copy that was put last.
    number: u64,
    bytes: Vec<u8>,
}

impl Room {
    /// Room for contents of `length` bytes, and for as many more where there may be so many.
    pub(crate) fn growing(tag: [u8; 4], length: usize) -> Result<Self, Error> {
        Self::new(tag, length.max(length.saturating_mul(2).min(LIMIT)))
    }

    /// Room for contents of `most` bytes.
    pub(crate) fn new(tag: [u8; 4], most: usize) -> Result<Self, Error> {
        if most > LIMIT {
            let (value, most) = (most as u64, LIMIT as u64);
            return Err(Error::Limit { what: "bytes of a postamble", value, least: 0, most });
        }
        let most = most.max(LEAST);
        let mut contents = tag.to_vec();
        contents.extend_from_slice(&(most as u32).to_le_bytes());
        let bytes = tagged(ROOM_TAG, &contents);
        let mut room = Self { tag, most, number: 0, bytes };
        room.bytes.resize(room.length(), 0);
        Ok(room)
    }

    pub(crate) fn tag(&self) -> [u8; 4] {
        self.tag
    }

    pub(crate) fn takes(&self, length: usize) -> bool {
        length <= self.most
    }

    /// Its bytes in the file; of one that does not count any more the head alone.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// How many bytes it takes in the file.
    pub(crate) fn length(&self) -> usize {
        ROOM_HEAD + 2 * (COPY_HEAD + self.most)
    }

    /// A larger one has taken its place: a reader takes the copy in that, whatever stands in this one.
    pub(crate) fn retire(&mut self) {
        self.bytes.truncate(ROOM_HEAD);
        self.bytes.shrink_to_fit();
    }

    /// Room for contents of `most` bytes, and for twice as many as there are in this one, if there may be so many.
    pub(crate) fn larger(&self, most: usize) -> Result<Self, Error> {
        Self::new(self.tag, most.max(self.most.saturating_mul(2).min(LIMIT)))
    }

    /// Overwrites the older copy, here and in the file, where the room begins at `location`. If that fails, the same copy is tried the next
    /// time: the other one is whole.
    pub(crate) fn put<S: Storage>(&mut self, storage: &mut S, location: u64, contents: &[u8]) -> Result<(), Error> {
        let number = self.number + 1;
        let mut numbered = number.to_le_bytes().to_vec();
        numbered.extend_from_slice(contents);
        let copy = tagged(self.tag, &numbered);
        let at = ROOM_HEAD + (number % 2) as usize * (COPY_HEAD + self.most);
        if let Err(error) = storage.write_at(location + at as u64, &copy) {
            return Err(Error::io(storage.path(), "write a postamble", error));
        }
        self.bytes[at..at + copy.len()].copy_from_slice(&copy);
        self.number = number;
        Ok(())
    }
}
