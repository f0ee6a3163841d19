//! Fields: the named basic types that a marker exports.
//!
//! | field | bytes in a record, which are little-endian and packed |
//! |---|---|
//! | integers, `bool`, `f32`, `f64` | unchanged; `usize` and `isize` as 64 bits; `bool` as one byte, 0 or 1 |
//! | `be u16` and other network-order integers | most significant byte first |
//! | `str`, `path` | the bytes, then one NUL; a NUL inside becomes 0x1A and the record counts as altered |
//! | `[T; N]` | N elements |
//! | `[T]` | the number of elements as `u32`, then the elements |
//! | `enum R { … }` | its integer R |
//! | `Option<T>` | one byte, 0 or 1; after 1 the value |
//!
//! Declarations name these types in a field block; the items of this module describe them to programs that read declarations:
//!
//! ```
//! use tracepoint::field::FieldType;
//!
//! tracepoint::define_trace! { provider = "bakery"; pub paid(cents: u64, by: &str) { cents: u64 = cents, by: str = by } }
//!
//! let fields = tracepoint::find("bakery:paid")?.marker().ok_or("a bare hook")?.fields();
//! assert_eq!((fields[0].name, fields[1].name), ("cents", "by"));
//! assert!(matches!(fields[1].ty, FieldType::Text));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Next: [`define_trace!`](crate::define_trace) for all forms of a field; [`marker`](crate::marker) for code that receives the values.

pub use tracepoint_core::field::{
    Base, ByteOrder, Elements, EnumLabel, FieldDescriptor, FieldType, IntegerType, Value,
};
