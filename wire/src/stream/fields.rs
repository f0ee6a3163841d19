//! Texts and lists in a payload.

use super::{DecodeError, LONGEST_NAME};
use crate::fields::{Fields, Reader, Writer, cut};

impl<'a> Reader<'a> {
    /// A text of any length.
    pub(super) fn text(&mut self) -> Result<&'a str, DecodeError> {
        let length = self.u16()?;
        let text = std::str::from_utf8(self.bytes(length.into())?).map_err(|_| DecodeError::Text)?;
        if text.contains('\0') { Err(DecodeError::Text) } else { Ok(text) }
    }

    /// A text that is a name.
    pub(super) fn name(&mut self) -> Result<&'a str, DecodeError> {
        match self.text()? {
            "" => Err(DecodeError::Text),
            name if name.len() > LONGEST_NAME => Err(DecodeError::Long),
            name => Ok(name),
        }
    }

    /// Reads the number of entries, a u32, and the entries.
    pub(super) fn entries<T: Fields>(&mut self, most: usize) -> Result<Vec<T>, DecodeError> {
        let count = self.u32()? as usize;
        if count > most {
            return Err(DecodeError::Long);
        }
        // Grows with the entries that are there, whatever their number is said to be.
        Ok((0..count).map(|_| T::read(self)).collect::<Result<_, _>>()?)
    }
}

impl Writer<'_> {
    /// Appends a text; bytes beyond 65535 are cut off at a character boundary.
    pub(super) fn text(self, text: &str) -> Self {
        let text = cut(text, usize::from(u16::MAX));
        self.u16(text.len() as u16).bytes(text.as_bytes())
    }

    pub(super) fn entries<T: Fields>(self, entries: &[T]) -> Self {
        entries.iter().fold(self.u32(entries.len() as u32), |to, entry| entry.write(to))
    }
}
