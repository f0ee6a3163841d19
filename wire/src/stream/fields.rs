//! Reads and writes the fields of a payload, one after the other.

use super::{LONGEST_NAME, Malformed};

/// The bytes of a payload that were not read yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(super) const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(super) fn bytes(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(Malformed::Short)?;
        self.0 = rest;
        Ok(taken)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (taken, rest) = self.0.split_first_chunk().ok_or(Malformed::Short)?;
        self.0 = rest;
        Ok(*taken)
    }

    pub(super) fn u8(&mut self) -> Result<u8, Malformed> {
        self.array().map(u8::from_be_bytes)
    }

    pub(super) fn u16(&mut self) -> Result<u16, Malformed> {
        self.array().map(u16::from_be_bytes)
    }

    pub(super) fn u32(&mut self) -> Result<u32, Malformed> {
        self.array().map(u32::from_be_bytes)
    }

    pub(super) fn u64(&mut self) -> Result<u64, Malformed> {
        self.array().map(u64::from_be_bytes)
    }

    pub(super) fn i64(&mut self) -> Result<i64, Malformed> {
        self.array().map(i64::from_be_bytes)
    }

    /// A text of any length.
    pub(super) fn text(&mut self) -> Result<&'a str, Malformed> {
        let length = self.u16()?;
        let text = std::str::from_utf8(self.bytes(length.into())?).map_err(|_| Malformed::Text)?;
        if text.contains('\0') { Err(Malformed::Text) } else { Ok(text) }
    }

    /// A text that is a name.
    pub(super) fn name(&mut self) -> Result<&'a str, Malformed> {
        match self.text()? {
            "" => Err(Malformed::Text),
            name if name.len() > LONGEST_NAME => Err(Malformed::Long),
            name => Ok(name),
        }
    }

    /// A u32 with the number of entries, and the entries of `size` bytes each.
    pub(super) fn entries<T>(
        &mut self,
        most: usize,
        size: usize,
        read: impl Fn(&mut Self) -> Result<T, Malformed>,
    ) -> Result<Vec<T>, Malformed> {
        let count = self.u32()? as usize;
        if count > most {
            return Err(Malformed::Long);
        }
        let mut entries = Self(self.bytes(count * size)?);
        (0..count).map(|_| read(&mut entries)).collect()
    }

    pub(super) fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.0)
    }
}

/// Appends fields.
#[derive(Debug)]
pub(super) struct Writer<'a>(pub(super) &'a mut Vec<u8>);

impl Writer<'_> {
    pub(super) fn bytes(self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self
    }

    pub(super) fn u16(self, number: u16) -> Self {
        self.bytes(&number.to_be_bytes())
    }

    pub(super) fn u32(self, number: u32) -> Self {
        self.bytes(&number.to_be_bytes())
    }

    pub(super) fn u64(self, number: u64) -> Self {
        self.bytes(&number.to_be_bytes())
    }

    pub(super) fn i64(self, number: i64) -> Self {
        self.bytes(&number.to_be_bytes())
    }

    /// A text; what exceeds 65535 bytes is cut off between two characters.
    pub(super) fn text(self, text: &str) -> Self {
        let mut length = text.len().min(usize::from(u16::MAX));
        while !text.is_char_boundary(length) {
            length -= 1;
        }
        self.u16(length as u16).bytes(&text.as_bytes()[..length])
    }

    pub(super) fn entries<T>(self, entries: &[T], write: impl Fn(Self, &T) -> Self) -> Self {
        entries.iter().fold(self.u32(entries.len() as u32), write)
    }
}
