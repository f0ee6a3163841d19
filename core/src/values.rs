//! Converts a field's expression to its value, with one function per kind, so that rustc reports a wrong type at the expression.

use std::borrow::Borrow;
use std::path::Path;
use tracepoint_ring::field::{Array, PathBytes, Scalar, Sequence, Text};

/// An integer, a `bool` or a float of the field's type.
#[inline(always)]
pub const fn scalar<T: Scalar>(value: T) -> T {
    value
}

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

/// The bound on a tracepoint's argument: every probe gets a copy.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an argument of a tracepoint: it is not `Copy`",
    label = "not `Copy`",
    note = "every probe gets the argument: take it by reference, `&{Self}`"
)]
pub trait ByValue {}

impl<T: Copy> ByValue for T {}

/// Checks an argument's type.
#[inline(always)]
pub const fn by_value<T: ByValue>() {}

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
    message = "`%s` takes text, not `{Self}`",
    label = "not a `str`",
    note = "for bytes that are not text use `define_trace!` with a field of type `[u8]` or `path`"
)]
pub trait Printed {
    /// The text.
    fn text(&self) -> &str;
}

impl Printed for str {
    #[inline(always)]
    fn text(&self) -> &str {
        self
    }
}

/// Pointers to text print what they point to.
macro_rules! printed_pointers {
    ($([$($parameters:tt)*] $pointer:ty),*) => {$(
        impl<$($parameters)*> Printed for $pointer {
            #[inline(always)]
            fn text(&self) -> &str {
                (**self).text()
            }
        }
    )*};
}

printed_pointers!([] String, [] std::borrow::Cow<'_, str>, [T: Printed + ?Sized] &T, [T: Printed + ?Sized] Box<T>);
printed_pointers!([T: Printed + ?Sized] std::sync::Arc<T>, [T: Printed + ?Sized] std::rc::Rc<T>);

/// The argument of `%s`.
#[inline(always)]
pub fn printed(value: &(impl Printed + ?Sized)) -> Text<'_> {
    Text(value.text())
}
