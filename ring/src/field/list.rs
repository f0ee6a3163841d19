//! The values of one event: a list of pairs that ends in `()`, or a tree of such lists if there are many.

use super::sealed::Sealed;
use super::value::{FieldValue, IS_BOUNDED, Value, Writer};

/// The evaluated fields of an event: `()`, `(first, rest)`, or [`Both`] of two. Sealed.
pub trait Fields: Sealed + Copy {
    /// The number of fields.
    #[doc(hidden)]
    const COUNT: usize;
    /// Whether the sum of the sizes may overflow; `encoded_size` then returns `usize::MAX`. Otherwise the sum is below a quarter of that.
    #[doc(hidden)]
    const MAY_SATURATE: bool = !IS_BOUNDED || Self::COUNT > MOST_FIELDS;
    /// The size of all fields in bytes.
    #[doc(hidden)]
    fn encoded_size(&self) -> usize;
    /// Writes all fields in order.
    ///
    /// # Safety
    ///
    /// `writer` has room for `encoded_size` bytes.
    #[doc(hidden)]
    unsafe fn encode(&self, writer: &mut Writer);
    /// The field at `index`, or `None` past the end.
    #[doc(hidden)]
    fn field(&self, index: usize) -> Option<Value<'_>>;
}

/// The number of fields of at most [`MAX_SIZE`](super::value::MAX_SIZE) bytes whose sizes are added without an overflow check.
const MOST_FIELDS: usize = 31;

/// The sum of two sizes.
#[inline(always)]
const fn sum(one: usize, other: usize, may_saturate: bool) -> usize {
    if may_saturate { one.saturating_add(other) } else { one + other }
}

/// The size of the fields with `front` bytes before them, limited to `usize::MAX / 2`, which fits into no packet.
#[inline(always)]
pub(crate) fn size_behind<V: Fields>(front: usize, values: &V) -> usize {
    let size = sum(front, values.encoded_size(), V::MAY_SATURATE);
    if V::MAY_SATURATE { size.min(usize::MAX / 2) } else { size }
}

impl Sealed for () {}

impl Fields for () {
    const COUNT: usize = 0;

    #[inline(always)]
    fn encoded_size(&self) -> usize {
        0
    }

    #[inline(always)]
    unsafe fn encode(&self, _: &mut Writer) {}

    #[inline]
    fn field(&self, _: usize) -> Option<Value<'_>> {
        None
    }
}

impl<First: FieldValue, Rest: Fields> Sealed for (First, Rest) {}

impl<First: FieldValue, Rest: Fields> Fields for (First, Rest) {
    const COUNT: usize = 1 + Rest::COUNT;

    #[inline(always)]
    fn encoded_size(&self) -> usize {
        sum(self.0.encoded_size(), self.1.encoded_size(), Self::MAY_SATURATE)
    }

    #[inline(always)]
    unsafe fn encode(&self, writer: &mut Writer) {
        // SAFETY: the caller guarantees room for both parts.
        unsafe {
            self.0.encode(writer);
            self.1.encode(writer);
        }
    }

    #[inline]
    fn field(&self, index: usize) -> Option<Value<'_>> {
        match index.checked_sub(1) {
            None => Some(self.0.value()),
            Some(rest) => self.1.field(rest),
        }
    }
}

/// Two lists, one after the other: avoids the compiler's recursion limit for a long list.
#[derive(Clone, Copy, Debug)]
pub struct Both<Front, Back>(pub Front, pub Back);

impl<Front: Fields, Back: Fields> Sealed for Both<Front, Back> {}

impl<Front: Fields, Back: Fields> Fields for Both<Front, Back> {
    const COUNT: usize = Front::COUNT + Back::COUNT;
    const MAY_SATURATE: bool = Front::MAY_SATURATE || Back::MAY_SATURATE || Self::COUNT > MOST_FIELDS;

    #[inline(always)]
    fn encoded_size(&self) -> usize {
        sum(self.0.encoded_size(), self.1.encoded_size(), Self::MAY_SATURATE)
    }

    #[inline(always)]
    unsafe fn encode(&self, writer: &mut Writer) {
        // SAFETY: the caller guarantees room for both parts.
        unsafe {
            self.0.encode(writer);
            self.1.encode(writer);
        }
    }

    #[inline]
    fn field(&self, index: usize) -> Option<Value<'_>> {
        match index.checked_sub(Front::COUNT) {
            None => self.0.field(index),
            Some(index) => self.1.field(index),
        }
    }
}
