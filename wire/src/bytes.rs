//! Big-endian integers and texts at offsets of a structure, and the result of decoding a message from a stream of bytes.

use thiserror::Error;

/// A message at the start of received bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decoded<T> {
    /// It is whole, and has this many bytes.
    Whole(T, usize),
    /// At least this many bytes are needed to go on. They are more than there are.
    Needs(usize),
}

impl<T> Decoded<T> {
    /// Converts the message.
    pub fn map<U>(self, convert: impl FnOnce(T) -> U) -> Decoded<U> {
        match self {
            Self::Whole(message, size) => Decoded::Whole(convert(message), size),
            Self::Needs(size) => Decoded::Needs(size),
        }
    }
}

/// The reason why bytes are not a message of a protocol. The connection cannot be used any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Malformed {
    /// The message announces fewer bytes than its kind has.
    #[error("a message of kind {kind} announces only {size} bytes")]
    Short {
        /// The number of the command.
        kind: u32,
        /// The bytes that it announces.
        size: u64,
    },
    /// The message announces more records or bytes than this implementation takes.
    #[error("{what}: {count} are announced, and at most {most} are accepted")]
    TooMany {
        /// What there are too many of.
        what: &'static str,
        /// How many are announced.
        count: u64,
        /// How many are accepted.
        most: u64,
    },
    /// The command is unknown.
    #[error("there is no command {0}")]
    Command(u32),
    /// A field has a number that the protocol does not define.
    #[error("there is no {what} {number}")]
    Number {
        /// The field.
        what: &'static str,
        /// Its value.
        number: u32,
    },
}

/// The bytes of a structure whose length was checked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fields<'a>(pub(super) &'a [u8]);

impl<'a> Fields<'a> {
    /// The structure at the start of `bytes`; `None` if they are fewer than `size`.
    pub(super) fn of(bytes: &'a [u8], size: usize) -> Option<Self> {
        bytes.get(..size).map(Self)
    }

    fn array<const N: usize>(self, at: usize) -> [u8; N] {
        let bytes = self.0.get(at..).and_then(|rest| rest.first_chunk());
        debug_assert!(bytes.is_some(), "offsets are within the checked length");
        bytes.copied().unwrap_or([0; N])
    }

    pub(super) fn u32(self, at: usize) -> u32 {
        u32::from_be_bytes(self.array(at))
    }

    pub(super) fn u64(self, at: usize) -> u64 {
        u64::from_be_bytes(self.array(at))
    }

    /// The text in a field of `size` bytes, up to its first NUL. Bytes that are not UTF-8 are replaced.
    pub(super) fn text(self, at: usize, size: usize) -> String {
        let field = self.0.get(at..at + size).unwrap_or_default();
        let end = field.iter().position(|byte| *byte == 0).unwrap_or(size);
        String::from_utf8_lossy(&field[..end]).into_owned()
    }
}

/// Appends a text to a field of `size` bytes, which ends with at least one NUL: a longer text is cut between two characters.
pub(super) fn put_text(out: &mut Vec<u8>, text: &str, size: usize) {
    let text = text.split('\0').next().unwrap_or_default();
    let mut kept = text.len().min(size - 1);
    while !text.is_char_boundary(kept) {
        kept -= 1;
    }
    out.extend_from_slice(&text.as_bytes()[..kept]);
    out.resize(out.len() + size - kept, 0);
}
