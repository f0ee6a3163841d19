//! Converts a field's expression to its value, with one function per kind, so that rustc reports a wrong type at the expression.

use super::{Array, PathBytes, Scalar, Sequence, Text};
use std::borrow::Borrow;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// Text: anything that coerces to `&str`.
#[inline(always)]
pub const fn text(value: &str) -> Text<'_> {
    Text(value)
}

/// The bytes of a path, from a reference to any type that is `AsRef<Path>`.
#[inline(always)]
pub fn path<P: AsRef<Path> + ?Sized>(value: &P) -> PathBytes<'_> {
    PathBytes(value.as_ref().as_os_str().as_encoded_bytes())
}

/// A fixed array, or a reference to one.
#[inline(always)]
pub fn array<T: Scalar, const N: usize>(value: &(impl Borrow<[T; N]> + ?Sized)) -> Array<'_, T, N> {
    Array(value.borrow())
}

/// A sequence: anything that coerces to a slice.
#[inline(always)]
pub const fn sequence<T: Scalar>(value: &[T]) -> Sequence<'_, T> {
    Sequence(value)
}

/// The types that `%p` accepts.
#[diagnostic::on_unimplemented(
    message = "`%p` takes a pointer or a reference, not `{Self}`",
    label = "not a pointer",
    note = "for an address in an integer use `%lx` with a `u64`, or `%zx` with a `usize`"
)]
pub trait Pointer {
    /// The address.
    fn address(&self) -> u64;
}

impl<T: ?Sized> Pointer for *const T {
    #[inline(always)]
    fn address(&self) -> u64 {
        self.cast::<()>().addr() as u64
    }
}

impl<T: ?Sized> Pointer for *mut T {
    #[inline(always)]
    fn address(&self) -> u64 {
        self.cast::<()>().addr() as u64
    }
}

impl<T: ?Sized> Pointer for &T {
    #[inline(always)]
    fn address(&self) -> u64 {
        std::ptr::from_ref(*self).cast::<()>().addr() as u64
    }
}

/// The argument of `%p`.
#[inline(always)]
pub fn pointer(value: impl Pointer) -> u64 {
    value.address()
}

/// The types that `%s` accepts.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not text",
    label = "not a `str`",
    note = "for bytes that are not text use `define_trace!` with a field of type `[u8]` or `path`"
)]
pub trait TextArgument {
    /// The text.
    fn text(&self) -> &str;
}

impl TextArgument for str {
    #[inline(always)]
    fn text(&self) -> &str {
        self
    }
}

/// Pointers to text print the text they point to.
macro_rules! printed_pointers {
    ($([$($parameters:tt)*] $pointer:ty),*) => {$(
        impl<$($parameters)*> TextArgument for $pointer {
            #[inline(always)]
            fn text(&self) -> &str {
                (**self).text()
            }
        }
    )*};
}

printed_pointers!([] String, [] std::borrow::Cow<'_, str>, [T: TextArgument + ?Sized] &T, [T: TextArgument + ?Sized] Box<T>);
printed_pointers!([T: TextArgument + ?Sized] std::sync::Arc<T>, [T: TextArgument + ?Sized] std::rc::Rc<T>);

/// The argument of `%s`.
#[inline(always)]
pub fn printed(value: &(impl TextArgument + ?Sized)) -> Text<'_> {
    Text(value.text())
}

/// A `Duration` in nanoseconds. More than 584 years are recorded as `u64::MAX`.
#[inline(always)]
pub fn duration(value: &Duration) -> u64 {
    u64::try_from(value.as_nanos()).unwrap_or(u64::MAX)
}

/// A `SystemTime` in nanoseconds since 1970, negative before; limited to the range of 64 bits, the years 1677 to 2262.
#[inline]
pub fn system_time(value: &SystemTime) -> i64 {
    match value.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(after) => i64::try_from(after.as_nanos()).unwrap_or(i64::MAX),
        Err(before) => i64::try_from(before.duration().as_nanos()).map_or(i64::MIN, |nanos| -nanos),
    }
}

/// The value in an `Option`, converted for its type.
#[inline(always)]
pub fn optional<T, V>(value: &Option<T>, convert: impl FnOnce(&T) -> V) -> Option<V> {
    value.as_ref().map(convert)
}

/// The text in an `Option`.
#[inline(always)]
pub fn optional_text<T: TextArgument>(value: &Option<T>) -> Option<Text<'_>> {
    value.as_ref().map(printed)
}

/// The path in an `Option`.
#[inline(always)]
pub fn optional_path<P: AsRef<Path>>(value: &Option<P>) -> Option<PathBytes<'_>> {
    value.as_ref().map(path)
}
