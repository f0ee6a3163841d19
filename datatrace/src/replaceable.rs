//! A postamble that can be replaced. It has space for two copies; a new copy overwrites the older one.
//!
//! ```text
//!   tagged "room": tag, capacity │ copy 0: tagged, number, contents … │ copy 1: tagged, number, contents …
//! ```
//!
//! The head at the front is written once. Each copy begins with a number that increases by one; of two intact copies, the one with the larger
//! number is valid. A copy torn by a kill fails its checksum, and the other one is intact.

use crate::error::Error;
use crate::storage::Storage;
use crate::tagged::{MAX_TAGGED, TAGGED_HEAD, tagged};

/// The tag of the head.
pub(crate) const ROOM_TAG: [u8; 4] = *b"room";
/// Size of the head: the head of a tagged postamble, then tag and capacity.
const ROOM_HEAD: usize = TAGGED_HEAD + 8;
/// Bytes before the contents of a copy: the head of a tagged postamble, then the copy's number.
pub(crate) const COPY_HEAD: usize = TAGGED_HEAD + NUMBER;
/// Size of a copy's number.
pub(crate) const NUMBER: usize = 8;
/// Minimum capacity in bytes.
const MIN_CAPACITY: usize = 1 << 10;
/// Maximum capacity in bytes.
const MAX_CAPACITY: usize = MAX_TAGGED as usize - NUMBER;

/// The bytes in the file, and the number of the newest copy.
#[derive(Debug)]
pub(crate) struct Replaceable {
    tag: [u8; 4],
    capacity: usize,
    /// The number of the newest copy.
    number: u64,
    bytes: Vec<u8>,
}

impl Replaceable {
    /// A postamble for contents of `length` bytes, with the same amount of space for growth.
    pub(crate) fn growing(tag: [u8; 4], length: usize) -> Result<Self, Error> {
        Self::new(tag, length.max(length.saturating_mul(2).min(MAX_CAPACITY)))
    }

    /// A postamble for contents of up to `capacity` bytes.
    pub(crate) fn new(tag: [u8; 4], capacity: usize) -> Result<Self, Error> {
        if capacity > MAX_CAPACITY {
            let (value, most) = (capacity as u64, MAX_CAPACITY as u64);
            return Err(Error::Limit { what: "bytes of a postamble", value, least: 0, most });
        }
        let capacity = capacity.max(MIN_CAPACITY);
        let mut contents = tag.to_vec();
        contents.extend_from_slice(&(capacity as u32).to_le_bytes());
        let bytes = tagged(ROOM_TAG, &contents);
        let mut postamble = Self { tag, capacity, number: 0, bytes };
        postamble.bytes.resize(postamble.len(), 0);
        Ok(postamble)
    }

    pub(crate) fn tag(&self) -> [u8; 4] {
        self.tag
    }

    pub(crate) fn capacity(&self) -> usize {
        self.capacity
    }

    /// The bytes to be written; after [`retire`](Self::retire), only the head.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Size in the file in bytes.
    pub(crate) fn len(&self) -> usize {
        ROOM_HEAD + 2 * (COPY_HEAD + self.capacity)
    }

    /// Frees the copies: a larger postamble with the same tag replaces this one, and readers use that one's copy, whatever this one contains.
    pub(crate) fn retire(&mut self) {
        self.bytes.truncate(ROOM_HEAD);
        self.bytes.shrink_to_fit();
    }

    /// A postamble with the same tag for `capacity` bytes, and at least twice the capacity of this one if the limit allows.
    pub(crate) fn larger(&self, capacity: usize) -> Result<Self, Error> {
        Self::new(self.tag, capacity.max(self.capacity.saturating_mul(2).min(MAX_CAPACITY)))
    }

    /// Overwrites the older copy, here and in the file, where this postamble begins at `location`. After a failure the next call writes to
    /// the same copy, because the other one is intact.
    pub(crate) fn put<S: Storage>(&mut self, storage: &mut S, location: u64, contents: &[u8]) -> Result<(), Error> {
        let number = self.number + 1;
        let mut numbered = number.to_le_bytes().to_vec();
        numbered.extend_from_slice(contents);
        let copy = tagged(self.tag, &numbered);
        let at = ROOM_HEAD + (number % 2) as usize * (COPY_HEAD + self.capacity);
        if let Err(error) = storage.write_at(location + at as u64, &copy) {
            return Err(Error::io(storage.path(), "write a postamble", error));
        }
        self.bytes[at..at + copy.len()].copy_from_slice(&copy);
        self.number = number;
        Ok(())
    }
}
