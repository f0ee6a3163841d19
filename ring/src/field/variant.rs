//! Values that may be absent, and values whose type is known only at run time: one byte that names the type, followed by the value.

use super::sealed::Sealed;
use super::text::Text;
use super::value::{FieldValue, MAX_SIZE, Value, Writer};

/// Writes the byte that precedes the value.
///
/// # Safety
///
/// `writer` has room for one byte.
#[inline(always)]
unsafe fn write_tag(tag: u8, writer: &mut Writer) {
    // SAFETY: the caller guarantees the room.
    unsafe {
        writer.at().write(tag);
        writer.advance(1);
    }
}

impl<V: FieldValue> Sealed for Option<V> {}

impl<V: FieldValue> FieldValue for Option<V> {
    #[inline(always)]
    fn encoded_size(&self) -> usize {
        self.as_ref().map_or(0, V::encoded_size).min(MAX_SIZE - 1) + 1
    }

    #[inline(always)]
    unsafe fn encode(&self, writer: &mut Writer) {
        // SAFETY: the caller guarantees room for `encoded_size` bytes: the tag, then the value if there is one.
        unsafe {
            write_tag(u8::from(self.is_some()), writer);
            if let Some(value) = self {
                value.encode(writer);
            }
        }
    }

    #[inline]
    fn value(&self) -> Value<'_> {
        self.as_ref().map_or(Value::Absent, V::value)
    }
}

/// The tag of a text.
pub(super) const TEXT: u8 = 5;

/// A value whose type is known at run time only.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub enum AnyValue<'a> {
    /// No value.
    #[default]
    Absent,
    /// An unsigned integer.
    Unsigned(u64),
    /// A signed integer.
    Signed(i64),
    /// A floating-point number.
    Float(f64),
    /// A boolean.
    Bool(bool),
    /// Text.
    Text(&'a str),
}

impl Sealed for AnyValue<'_> {}

impl FieldValue for AnyValue<'_> {
    #[inline(always)]
    fn encoded_size(&self) -> usize {
        1 + match self {
            Self::Absent => 0,
            Self::Unsigned(_) | Self::Signed(_) | Self::Float(_) => 8,
            Self::Bool(_) => 1,
            Self::Text(text) => Text(text).encoded_size(),
        }
    }

    #[inline(always)]
    unsafe fn encode(&self, writer: &mut Writer) {
        // SAFETY: the caller guarantees room for `encoded_size` bytes: the tag, then the value.
        unsafe {
            match *self {
                Self::Absent => write_tag(0, writer),
                Self::Unsigned(value) => {
                    write_tag(1, writer);
                    value.encode(writer);
                }
                Self::Signed(value) => {
                    write_tag(2, writer);
                    value.encode(writer);
                }
                Self::Float(value) => {
                    write_tag(3, writer);
                    value.encode(writer);
                }
                Self::Bool(value) => {
                    write_tag(4, writer);
                    value.encode(writer);
                }
                Self::Text(text) => {
                    write_tag(TEXT, writer);
                    Text(text).encode(writer);
                }
            }
        }
    }

    #[inline]
    fn value(&self) -> Value<'_> {
        self.into_value()
    }
}

impl<'a> AnyValue<'a> {
    pub(super) fn into_value(self) -> Value<'a> {
        match self {
            Self::Absent => Value::Absent,
            Self::Unsigned(value) => Value::Unsigned(value),
            Self::Signed(value) => Value::Signed(value),
            Self::Float(value) => Value::Float(value),
            Self::Bool(value) => Value::Bool(value),
            Self::Text(text) => Value::Text(text),
        }
    }

    /// Decodes a value at the front of `bytes`, and removes it; `None` at the end.
    pub(super) fn decode(bytes: &mut &'a [u8]) -> Option<Self> {
        let (tag, rest) = bytes.split_first()?;
        let mut size = 8;
        let number = || rest.first_chunk().map(|bytes| u64::from_le_bytes(*bytes));
        let value = match tag {
            1 => Self::Unsigned(number()?),
            2 => Self::Signed(number()?.cast_signed()),
            3 => Self::Float(f64::from_bits(number()?)),
            4 => {
                size = 1;
                Self::Bool(*rest.first()? != 0)
            }
            &TEXT => {
                let end = rest.iter().position(|byte| *byte == 0)?;
                size = end + 1;
                Self::Text(str::from_utf8(&rest[..end]).ok()?)
            }
            _ => {
                size = 0;
                Self::Absent
            }
        };
        *bytes = &rest[size..];
        Some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::NulHandling;

    fn encoded<V: FieldValue>(value: V) -> Vec<u8> {
        let mut room = vec![0x55; value.encoded_size() + 1];
        // SAFETY: there is room for one byte more.
        unsafe { value.encode(&mut Writer::new(room.as_mut_ptr(), NulHandling::Replace)) };
        assert_eq!(room.pop(), Some(0x55), "{value:?} writes what it said", value = value.value());
        room
    }

    #[test]
    fn a_byte_names_the_type() {
        assert_eq!(encoded(None::<u32>), [0]);
        assert_eq!(encoded(Some(7_u32)), [1, 7, 0, 0, 0]);
        assert_eq!(encoded(Some(Text("ab"))), b"\x01ab\0");
        assert_eq!(encoded(AnyValue::Absent), [0]);
        assert_eq!(encoded(AnyValue::Unsigned(1)), [1, 1, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(encoded(AnyValue::Signed(-1)), [2, 255, 255, 255, 255, 255, 255, 255, 255]);
        assert_eq!(encoded(AnyValue::Float(1.0)), [3, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f]);
        assert_eq!(encoded(AnyValue::Bool(true)), [4, 1]);
        assert_eq!(encoded(AnyValue::Text("ab")), b"\x05ab\0");
    }
}
