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

/// A value that a message contains: an integer, an array of bytes, or a structure made of them.
pub(crate) trait Fields: Sized {
    fn read(from: &mut Reader<'_>) -> Result<Self, Short>;

    fn write<'w>(&self, to: Writer<'w>) -> Writer<'w>;
}

/// The written bytes, with zeros up to this size.
pub(crate) fn to_array<const N: usize>(write: impl FnOnce(Writer<'_>) -> Writer<'_>) -> [u8; N] {
    let mut bytes = Vec::with_capacity(N);
    write(Writer(&mut bytes));
    let mut array = [0; N];
    array[..bytes.len()].copy_from_slice(&bytes);
    array
}

macro_rules! integers {
    ($($integer:ident)*) => {$(
        impl Fields for $integer {
            fn read(from: &mut Reader<'_>) -> Result<Self, Short> {
                from.array().map(Self::from_be_bytes)
            }

            fn write<'w>(&self, to: Writer<'w>) -> Writer<'w> {
                to.bytes(&self.to_be_bytes())
            }
        }

        impl Reader<'_> {
            pub(crate) fn $integer(&mut self) -> Result<$integer, Short> {
                Fields::read(self)
            }
        }

        impl Writer<'_> {
            pub(crate) fn $integer(self, number: $integer) -> Self {
                number.write(self)
            }
        }
    )*};
}

integers!(u8 u16 u32 u64 i64);

impl<const N: usize> Fields for [u8; N] {
    fn read(from: &mut Reader<'_>) -> Result<Self, Short> {
        from.array()
    }

    fn write<'w>(&self, to: Writer<'w>) -> Writer<'w> {
        to.bytes(self)
    }
}

/// Implements [`Fields`] for structures, whose fields a message has in this order.
macro_rules! layout {
    ($($name:ident { $($field:ident),+ })+) => {$(
        impl $crate::fields::Fields for $name {
            fn read(from: &mut $crate::fields::Reader<'_>) -> Result<Self, $crate::fields::Short> {
                Ok(Self { $($field: $crate::fields::Fields::read(from)?),+ })
            }

            fn write<'w>(&self, to: $crate::fields::Writer<'w>) -> $crate::fields::Writer<'w> {
                $(let to = self.$field.write(to);)+
                to
            }
        }
    )+};
}
pub(crate) use layout;

/// The beginning of a text, of at most `most` bytes.
pub(crate) fn cut(text: &str, most: usize) -> &str {
    let mut length = text.len().min(most);
    while !text.is_char_boundary(length) {
        length -= 1;
    }
    &text[..length]
}
