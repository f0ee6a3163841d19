//! Tagged postambles: a tag, a length and a checksum before the contents. A reader recognizes them, and detects one that was torn by a
//! kill.

use crc32fast::Hasher;

/// The first four bytes of a tagged postamble.
pub const TAGGED_MAGIC: [u8; 4] = *b"dtpa";
/// Bytes before the contents: magic, tag, length, checksum.
pub const TAGGED_HEAD: usize = 16;
/// Maximum size of contents that a reader accepts, in bytes.
pub const MAX_TAGGED: u32 = 64 << 20;

/// Encodes a tagged postamble.
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

pub(crate) fn checksum(tag: [u8; 4], length: [u8; 4], contents: &[u8]) -> u32 {
    let mut sum = Hasher::new();
    sum.update(&tag);
    sum.update(&length);
    sum.update(contents);
    sum.finalize()
}

/// A postamble read with its tag.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TaggedPostamble {
    /// Its tag.
    pub tag: [u8; 4],
    /// Its offset in the file, in bytes.
    pub offset: u64,
    /// Its contents.
    pub contents: Vec<u8>,
}
