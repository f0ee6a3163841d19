//! The texts that globs are matched against.

use tracepoint_core::field::{Elements, Value};

/// Bytes that are usually, but need not be, UTF-8.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Text<'v> {
    Bytes(&'v [u8]),
    /// An array or a sequence of bytes in a field of an event.
    Elements(&'v dyn Elements),
}

impl<'v> Text<'v> {
    /// The text of a field; `None` if the field holds none.
    #[inline]
    pub(crate) fn of(value: Value<'v>) -> Option<Self> {
        match value {
            Value::Text(text) => Some(Self::Bytes(text.as_bytes())),
            Value::Path(bytes) => Some(Self::Bytes(bytes)),
            Value::Elements(elements) => Some(Self::Elements(elements)),
            _ => None,
        }
    }

    #[inline]
    pub(super) fn len(self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::Elements(elements) => elements.len(),
        }
    }

    /// The byte at `index`; `None` past the end.
    #[inline]
    pub(super) fn at(self, index: usize) -> Option<u8> {
        match self {
            Self::Bytes(bytes) => bytes.get(index).copied(),
            Self::Elements(elements) => match elements.get(index) {
                Some(Value::Unsigned(byte)) => Some(byte as u8),
                _ => None,
            },
        }
    }

    /// Returns whether both have the same bytes.
    pub(crate) fn same(self, other: Self) -> bool {
        match (self, other) {
            (Self::Bytes(one), Self::Bytes(other)) => one == other,
            _ => self.len() == other.len() && (0..self.len()).all(|index| self.at(index) == other.at(index)),
        }
    }

    /// Returns the end of the character that begins at `at`: that byte and the continuation bytes after it, at most four in all. Where the
    /// bytes are not UTF-8, these bytes count as one character.
    pub(super) fn character_end(self, at: usize) -> usize {
        let continues = |end: &usize| self.at(*end).is_some_and(|byte| byte & 0xc0 == 0x80);
        at + 1 + (at + 1..at + 4).take_while(continues).count()
    }

    /// The character that begins at `at`, and its end; `None` where the bytes are not UTF-8.
    pub(super) fn character(self, at: usize) -> Option<(char, usize)> {
        let (end, mut bytes) = (self.character_end(at), [0; 4]);
        for (slot, index) in bytes.iter_mut().zip(at..end) {
            *slot = self.at(index)?;
        }
        let text = std::str::from_utf8(bytes.get(..end - at)?).ok()?;
        Some((text.chars().next()?, end))
    }
}
