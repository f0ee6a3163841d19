//! The description of a field, as data: listed, and turned into metadata by the sinks.

use std::fmt;

/// The base used to display an integer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Base {
    /// Base 2.
    Binary,
    /// Base 8.
    Octal,
    /// Base 10.
    #[default]
    Decimal,
    /// Base 16.
    Hexadecimal,
}

impl Base {
    /// The base as a number.
    pub const fn radix(self) -> u8 {
        match self {
            Self::Binary => 2,
            Self::Octal => 8,
            Self::Decimal => 10,
            Self::Hexadecimal => 16,
        }
    }
}

/// The order of an integer's bytes in the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum ByteOrder {
    /// Least significant byte first, as in the rest of the trace.
    #[default]
    Little,
    /// Most significant byte first: network order.
    Big,
}

/// An integer field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct IntegerType {
    /// Width in bits: 8, 16, 32 or 64.
    pub bits: u8,
    /// True if negative numbers are possible.
    pub signed: bool,
    /// The base used to display it.
    pub base: Base,
    /// The order of its bytes.
    pub order: ByteOrder,
}

/// One label of an enumeration and the value that it names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EnumLabel {
    /// The label.
    pub name: &'static str,
    /// The value.
    pub value: i128,
}

/// The type of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FieldType {
    /// An integer.
    Integer(IntegerType),
    /// `bool`: one byte, 0 or 1.
    Bool,
    /// A span of time: its nanoseconds as a 64-bit unsigned integer. It is displayed with a unit.
    Duration,
    /// A floating-point number of 32 or 64 bits.
    Float {
        /// Width in bits: 32 or 64.
        bits: u8,
    },
    /// Text in UTF-8, ended by a NUL.
    Text,
    /// The bytes of a path (any bytes but NUL), ended by a NUL.
    Path,
    /// An integer with names for some of its values.
    Enum {
        /// The integer.
        container: IntegerType,
        /// The names.
        labels: &'static [EnumLabel],
    },
    /// A fixed number of elements.
    Array {
        /// The type of an element: an integer, a bool or a float.
        element: &'static FieldType,
        /// Number of elements.
        len: usize,
    },
    /// A variable number of elements, preceded by a 32-bit length.
    Sequence {
        /// The type of an element: an integer, a bool or a float.
        element: &'static FieldType,
    },
    /// A value that may be absent: one byte, 0 or 1, and after 1 the value.
    Optional {
        /// The type of the value: any except an array, a sequence, `Optional` and `Any`.
        value: &'static FieldType,
    },
    /// A value whose type is known only at run time, see [`AnyValue`](super::AnyValue).
    Any,
}

/// Unsigned, 64 bits.
const U64: IntegerType = IntegerType { bits: 64, signed: false, base: Base::Decimal, order: ByteOrder::Little };

impl FieldType {
    /// For a value preceded by a byte that names its type: the possible types, indexed by that byte; the first one stands for an absent
    /// value and has no type. Empty for all other types.
    pub fn options(&self) -> Vec<(&'static str, Option<Self>)> {
        match self {
            Self::Optional { value } => vec![("none", None), ("some", Some(**value))],
            Self::Any => vec![
                ("none", None),
                ("u64", Some(Self::Integer(U64))),
                ("i64", Some(Self::Integer(IntegerType { signed: true, ..U64 }))),
                ("f64", Some(Self::Float { bits: 64 })),
                ("boolean", Some(Self::Bool)),
                ("text", Some(Self::Text)),
            ],
            _ => Vec::new(),
        }
    }
}

impl fmt::Display for IntegerType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.base {
            Base::Decimal => {}
            Base::Hexadecimal => f.write_str("hex ")?,
            Base::Octal => f.write_str("oct ")?,
            Base::Binary => f.write_str("bin ")?,
        }
        if self.order == ByteOrder::Big {
            f.write_str("be ")?;
        }
        write!(f, "{}{}", if self.signed { 'i' } else { 'u' }, self.bits)
    }
}

impl fmt::Display for FieldType {
    /// Writes the type in the syntax of a field block.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(integer) => integer.fmt(f),
            Self::Bool => f.write_str("bool"),
            Self::Duration => f.write_str("Duration"),
            Self::Float { bits } => write!(f, "f{bits}"),
            Self::Text => f.write_str("str"),
            Self::Path => f.write_str("path"),
            Self::Enum { container, labels } => {
                write!(f, "enum {container} {{ ")?;
                for (i, label) in labels.iter().enumerate() {
                    write!(f, "{}{} = {}", if i == 0 { "" } else { ", " }, label.name, label.value)?;
                }
                f.write_str(" }")
            }
            Self::Array { element, len } => write!(f, "[{element}; {len}]"),
            Self::Sequence { element } => write!(f, "[{element}]"),
            Self::Optional { value } => write!(f, "Option<{value}>"),
            Self::Any => f.write_str("any"),
        }
    }
}

/// A field of a marker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FieldDescriptor {
    /// The name.
    pub name: &'static str,
    /// The type.
    pub ty: FieldType,
    /// The doc comment above the field; empty if there is none.
    pub doc: &'static str,
}
