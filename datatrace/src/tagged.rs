//! Postambles that say what they are: a tag, a length and a checksum in front of the contents, so that a reader knows each, and
//! one that was torn by a kill is not taken for a whole one.

use crate::read::{DtReader, ReadError};
use crc32fast::Hasher;
use std::io::Read;

/// What each begins with.
pub const TAGGED_MAGIC: [u8; 4] = *b"dtpa";
/// Bytes in front of the contents: magic, tag, length, checksum.
pub const TAGGED_HEAD: usize = 16;
/// The most contents that a reader takes, in bytes.
pub const MAX_TAGGED: u32 = 64 << 20;

/// A postamble with a tag in front.
///
/// ```
/// let postamble = datatrace::tagged(*b"note", b"all went well");
/// assert_eq!(postamble.len(), 16 + 13);
/// ```
///
/// # Panics
///
/// If the contents have more than [`MAX_TAGGED`] bytes.
pub fn tagged(tag: [u8; 4], contents: &[u8]) -> Vec<u8> {
    assert!(contents.len() <= MAX_TAGGED as usize, "a tagged postamble has at most {MAX_TAGGED} bytes");
    let length = (contents.len() as u32).to_le_bytes();
    let mut postamble = Vec::with_capacity(TAGGED_HEAD + contents.len());
    postamble.extend_from_slice(&TAGGED_MAGIC);
    postamble.extend_from_slice(&tag);
    postamble.extend_from_slice(&length);
    postamble.extend_from_slice(&checksum(tag, length, contents).to_le_bytes());
    postamble.extend_from_slice(contents);
    postamble
}

fn checksum(tag: [u8; 4], length: [u8; 4], contents: &[u8]) -> u32 {
    let mut sum = Hasher::new();
    sum.update(&tag);
    sum.update(&length);
    sum.update(contents);
    sum.finalize()
}

/// A postamble that was read with its tag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tagged {
    /// What it is.
    pub tag: [u8; 4],
    /// Where it begins, in bytes from the start of the file.
    pub offset: u64,
    /// What it contains.
    pub contents: Vec<u8>,
}

impl DtReader {
    /// The tagged postambles at the beginning of the postambles: up to the first that has no tag, or is not whole.
    ///
    /// # Errors
    ///
    /// [`ReadError::Io`].
    pub fn tagged_postambles(&self) -> impl Iterator<Item = Result<Tagged, ReadError>> + '_ {
        let mut bytes = self.postambles();
        let mut offset = self.header().postamble_location();
        std::iter::from_fn(move || {
            let read = read(&mut bytes, offset, self.file_size()).map_err(|error| ReadError::io(self.path(), error));
            let tagged = read.transpose()?;
            if let Ok(tagged) = &tagged {
                offset += (TAGGED_HEAD + tagged.contents.len()) as u64;
            }
            Some(tagged)
        })
    }
}

fn read(bytes: &mut impl Read, offset: u64, file_size: u64) -> std::io::Result<Option<Tagged>> {
    let mut head = [0; TAGGED_HEAD];
    if read_full(bytes, &mut head)? < TAGGED_HEAD || head[..4] != TAGGED_MAGIC {
        return Ok(None);
    }
    let word = |at: usize| [head[at], head[at + 1], head[at + 2], head[at + 3]];
    let (tag, length) = (word(4), u32::from_le_bytes(word(8)));
    let end = offset + TAGGED_HEAD as u64 + u64::from(length);
    if length > MAX_TAGGED || end > file_size {
        return Ok(None);
    }
    let mut contents = vec![0; length as usize];
    let whole = read_full(bytes, &mut contents)? == contents.len()
        && checksum(tag, word(8), &contents) == u32::from_le_bytes(word(12));
    Ok(whole.then_some(Tagged { tag, offset, contents }))
}

fn read_full(bytes: &mut impl Read, place: &mut [u8]) -> std::io::Result<usize> {
    let mut there = 0;
    while there < place.len() {
        match bytes.read(&mut place[there..])? {
            0 => break,
            count => there += count,
        }
    }
    Ok(there)
}
