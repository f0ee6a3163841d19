//! The result of decoding a message from a stream of bytes.

use crate::fields::{Reader, Short};
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
    /// The message of `size` bytes that is read from the start of `bytes`.
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
    /// The error of a message that is whole.
    pub(crate) fn transpose(self) -> Result<Decoded<T>, E> {
        Ok(match self {
            Self::Whole(message, size) => Decoded::Whole(message?, size),
            Self::Needs(size) => Decoded::Needs(size),
        })
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
