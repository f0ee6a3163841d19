//! The result of decoding a message from a stream of bytes.

use crate::fields::{Reader, Short};
use thiserror::Error;

/// A message at the start of received bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decoded<T> {
    /// A complete message, and its size in bytes.
    Whole(T, usize),
    /// The message is incomplete: at least this many bytes are needed, which is more than are available.
    Needs(usize),
}

impl<T> Decoded<T> {
    /// The message of `size` bytes, read from the start of `bytes`.
    pub(crate) fn read<'a>(
        bytes: &'a [u8],
        size: usize,
        read: impl FnOnce(&mut Reader<'a>) -> Result<T, Short>,
    ) -> Self {
        let message = Reader::new(bytes).bytes(size).and_then(|whole| read(&mut Reader::new(whole)));
        message.map_or(Self::Needs(size), |message| Self::Whole(message, size))
    }

    /// Converts the message.
    pub fn map<U>(self, convert: impl FnOnce(T) -> U) -> Decoded<U> {
        match self {
            Self::Whole(message, size) => Decoded::Whole(convert(message), size),
            Self::Needs(size) => Decoded::Needs(size),
        }
    }
}

impl<T, E> Decoded<Result<T, E>> {
    /// The error of a complete message.
    pub(crate) fn transpose(self) -> Result<Decoded<T>, E> {
        Ok(match self {
            Self::Whole(message, size) => Decoded::Whole(message?, size),
            Self::Needs(size) => Decoded::Needs(size),
        })
    }
}

/// The reason why bytes are not a message of a protocol. The connection cannot be used afterwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The message announces fewer bytes than its kind requires.
    #[error("a message of kind {kind} announces only {size} bytes")]
    Short {
        /// The number of the command.
        kind: u32,
        /// The announced number of bytes.
        size: u64,
    },
    /// The message announces more records or bytes than this implementation accepts.
    #[error("{what}: {count} are announced, and at most {most} are accepted")]
    TooMany {
        /// The kind of thing that exceeds the limit.
        what: &'static str,
        /// The announced number.
        count: u64,
        /// The maximum number.
        most: u64,
    },
    /// The command is unknown.
    #[error("there is no command {0}")]
    Command(u32),
    /// A field has a value that the protocol does not define.
    #[error("there is no {what} {number}")]
    Number {
        /// The field.
        what: &'static str,
        /// Its value.
        number: u32,
    },
}
