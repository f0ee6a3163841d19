//! Fields: the named basic types that a marker exports, and their encoding.
//!
//! A marker's values are a list of pairs, `(i32, (Text, (Be<u16>, ())))`, which the macros build, so the compiler knows the layout of a record.
//! The encoding is the one of CTF 1.8, byte-packed, little-endian:
//!
//! | field | bytes |
//! |---|---|
//! | integers, `bool`, `f32`, `f64` | unchanged; `usize` and `isize` as 64 bits; `bool` as one byte, 0 or 1 |
//! | `be u16` and other network-order integers | most significant byte first |
//! | `str`, `path` | the bytes, then one NUL; a NUL inside becomes 0x1A and the record counts as altered |
//! | `[T; N]` | N elements |
//! | `[T]` | the number of elements as `u32`, then the elements |
//! | `enum R { … }` | its integer R |
//! | `Option<T>` | one byte, 0 or 1; after 1 the value |
//! | a value whose type is known at run time | one byte that names the type (0: none, then u64, i64, f64, bool, str), and the value |

mod any_fields;
#[doc(hidden)]
pub mod argument;
#[doc(hidden)]
pub mod conditional;
mod elements;
mod exact;
#[doc(hidden)]
pub mod expression;
mod formatted;
mod scalar;
mod text;
mod types;
mod value;
mod variant;
pub mod words;

/// Seals the traits of this module: the ring relies on their `encode` to write exactly `encoded_size` bytes.
#[doc(hidden)]
pub mod sealed {
    /// Cannot be implemented elsewhere.
    pub trait Sealed {}
}

pub use any_fields::{AnyBuffer, AnyFields, AnyText, MAX_ANY_FIELDS};
pub use elements::{Array, Sequence};
#[doc(hidden)]
pub use exact::compare_exactly;
pub use formatted::{TextBuffer, debug, display, optional_debug, optional_display};
pub use scalar::{Be, Scalar};
pub use text::{PathBytes, Text};
pub use types::{Base, ByteOrder, EnumLabel, FieldDescriptor, FieldType, IntegerType};
#[doc(hidden)]
pub use value::NulHandling;
pub(crate) use value::size_behind;
pub use value::{At, Concat, Elements, FieldValue, Fields, Value, Writer};
pub use variant::AnyValue;
