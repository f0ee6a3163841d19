//! Reads and writes consecutive fields of messages. Integers are big-endian.

/// The bytes end before a field does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Short;

/// The unread bytes of a message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// Number of unread bytes.
    pub(crate) const fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn bytes(&mut self, count: usize) -> Result<&'a [u8], Short> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(Short)?;
        self.0 = rest;
        Ok(taken)
    }

    pub(crate) fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.0)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], Short> {
        let (taken, rest) = self.0.split_first_chunk().ok_or(Short)?;
        self.0 = rest;
        Ok(*taken)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, Short> {
        self.array().map(u8::from_be_bytes)
    }

    pub(crate) fn u16(&mut self) -> Result<u16, Short> {
        self.array().map(u16::from_be_bytes)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, Short> {
        self.array().map(u32::from_be_bytes)
    }

    pub(crate) fn u64(&mut self) -> Result<u64, Short> {
        self.array().map(u64::from_be_bytes)
    }

    pub(crate) fn i64(&mut self) -> Result<i64, Short> {
        self.array().map(i64::from_be_bytes)
    }

    /// The text in a field of `size` bytes, up to its first NUL. Bytes that are not UTF-8 are replaced.
    pub(crate) fn padded(&mut self, size: usize) -> Result<String, Short> {
        let field = self.bytes(size)?;
        let end = field.iter().position(|byte| *byte == 0).unwrap_or(size);
        Ok(String::from_utf8_lossy(&field[..end]).into_owned())
    }
}

/// Appends fields.
#[derive(Debug)]
pub(crate) struct Writer<'a>(pub(crate) &'a mut Vec<u8>);

impl Writer<'_> {
    pub(crate) fn bytes(self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self
    }

    pub(crate) fn u8(self, number: u8) -> Self {
        self.bytes(&[number])
    }

    pub(crate) fn u16(self, number: u16) -> Self {
        self.bytes(&number.to_be_bytes())
    }

    pub(crate) fn u32(self, number: u32) -> Self {
        self.bytes(&number.to_be_bytes())
    }

    pub(crate) fn u64(self, number: u64) -> Self {
        self.bytes(&number.to_be_bytes())
    }

    pub(crate) fn i64(self, number: i64) -> Self {
        self.bytes(&number.to_be_bytes())
    }

    /// A text and its NUL. A text that contains a NUL ends there for the receiver.
    pub(crate) fn terminated(self, text: &str) -> Self {
        self.bytes(text.as_bytes()).u8(0)
    }

    /// A text in a field of `size` bytes, which ends with at least one NUL: a longer text is cut at a character boundary.
    pub(crate) fn padded(self, text: &str, size: usize) -> Self {
        let text = cut(text.split('\0').next().unwrap_or_default(), size - 1);
        let end = self.0.len() + size;
        let writer = self.bytes(text.as_bytes());
        writer.0.resize(end, 0);
        writer
    }
}

/// The beginning of a text, of at most `most` bytes.
pub(crate) fn cut(text: &str, most: usize) -> &str {
    let mut length = text.len().min(most);
    while !text.is_char_boundary(length) {
        length -= 1;
    }
    &text[..length]
}
