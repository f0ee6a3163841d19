//! Fields: the named basic types that a marker exports, and how each becomes bytes.
//!
//! A marker's values are a list of pairs, `(i32, (Text, (Be<u16>, ())))`, built by the macros and known to the compiler: size
//! and stores of a record are worked out at compile time. The bytes are those of CTF 1.8, packed, little-endian:
//!
//! | field | bytes |
//! |---|---|
//! | integers, `bool`, `f32`, `f64` | as they are; `usize` and `isize` as 64 bits; `bool` as one byte, 0 or 1 |
//! | `be u16` and other network-order integers | most significant byte first |
//! | `str`, `path` | the bytes, then one NUL; a NUL inside becomes 0x1A and the record counts as altered |
//! | `[T; N]` | N elements |
//! | `[T]` | the number of elements as `u32`, then the elements |
//! | `enum R { … }` | its integer R |

mod copy;
mod elements;
mod list;
mod scalar;
mod types;
mod value;

/// Keeps the traits of this module to types of this project: the ring trusts what their `encode` writes.
#[doc(hidden)]
pub mod sealed {
    /// Not for others to implement.
    pub trait Sealed {}
}

pub use elements::{Array, Sequence};
pub(crate) use list::size_behind;
pub use list::{Both, Fields};
pub use scalar::{Be, Scalar};
pub use types::{Base, ByteOrder, EnumLabel, FieldDescriptor, FieldType, IntegerType};
#[doc(hidden)]
pub use value::NulHandling;
pub use value::{Elements, FieldValue, PathBytes, Text, Value, Writer};
