//! Decoded values.

use std::sync::Arc;

use crate::metadata::types::{Base, EnumType, Field, StructType, TRACER_OPTIONS};

/// An integer, and the format in which it is displayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Int {
    /// The value; within the range of 64-bit numbers, signed or unsigned.
    pub value: i128,
    /// Its size in bits, 1 to 64.
    pub bits: u8,
    /// True if its type is signed.
    pub signed: bool,
    /// The preferred base for display.
    pub base: Base,
    /// True for a `bool`: 0 is false, other values are true.
    pub truth: bool,
}

impl Int {
    /// The value as 64 bits: a negative number in two's complement.
    #[expect(clippy::cast_sign_loss, reason = "the sign is kept in the highest bit")]
    pub fn pattern(self) -> u64 {
        self.value as u64
    }
}

/// The value of a field.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Value {
    /// An integer.
    Int(Int),
    /// An integer with labels.
    Enum(Int, Arc<EnumType>),
    /// A 32-bit floating-point number.
    F32(f32),
    /// A 64-bit floating-point number.
    F64(f64),
    /// Text, without its terminator. Any bytes but NUL.
    String(Box<[u8]>),
    /// An array or a sequence of unsigned 8-bit integers, with their preferred base for display.
    Bytes(Box<[u8]>, Base),
    /// Any other array or sequence.
    Array(Vec<Value>),
    /// A structure.
    Struct(StructValue),
    /// The selected option of a variant: its name, without a leading underscore, and its value.
    Variant(Arc<str>, Box<Value>),
}

impl Value {
    /// The value as an unsigned number, if it is an integer that is not negative.
    pub fn as_u64(&self) -> Option<u64> {
        match self {
            Self::Int(int) | Self::Enum(int, _) => u64::try_from(int.value).ok(),
            _ => None,
        }
    }

    /// The value as a signed number, if it is an integer that fits.
    pub fn as_i64(&self) -> Option<i64> {
        match self {
            Self::Int(int) | Self::Enum(int, _) => i64::try_from(int.value).ok(),
            _ => None,
        }
    }

    /// The value itself. For a variant that the tracer writes for an `Option`, or for a value of any type, the value in it, or `None` if it
    /// is absent.
    pub fn present(&self) -> Option<&Self> {
        match self {
            Self::Variant(option, _) if **option == *"none" => None,
            Self::Variant(option, value) if TRACER_OPTIONS.contains(&&**option) => Some(value),
            _ => Some(self),
        }
    }

    /// The bytes of a text or of an array of bytes.
    pub fn as_bytes(&self) -> Option<&[u8]> {
        match self {
            Self::String(bytes) | Self::Bytes(bytes, _) => Some(bytes),
            _ => None,
        }
    }
}

/// The values of a structure's members, with the type that contains their names.
#[derive(Clone, Debug)]
pub struct StructValue {
    pub(crate) ty: Arc<StructType>,
    pub(crate) values: Vec<Value>,
}

impl StructValue {
    /// The members in order: names without a leading underscore, and values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.ty.fields.iter().map(Field::name).zip(&self.values)
    }

    /// The value of the first member with this name (without a leading underscore).
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.iter().find(|(n, _)| *n == name).map(|(_, value)| value)
    }

    /// The value of the member with this index.
    pub fn at(&self, index: usize) -> Option<&Value> {
        self.values.get(index)
    }

    /// The number of members.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// True if there are no members.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }
}
