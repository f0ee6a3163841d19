//! The values of one event: a list of pairs that ends in `()`, or, if there are many, a tree of such lists.

use super::sealed::Sealed;
use super::value::{FieldValue, Value, Writer};

/// The evaluated fields of an event: `()`, `(first, rest)`, or [`Both`] of two. Sealed.
pub trait Fields: Sealed + Copy {
    /// How many fields there are.
    #[doc(hidden)]
    const COUNT: usize;
    /// How many bytes all fields take.
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
        self.0.encoded_size().saturating_add(self.1.encoded_size())
    }

    #[inline(always)]
    unsafe fn encode(&self, writer: &mut Writer) {
        // SAFETY: the caller gives room for both parts, one after the other.
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

/// Two lists, one after the other: the compiler follows a single one only so deep.
#[derive(Clone, Copy, Debug)]
pub struct Both<Front, Back>(pub Front, pub Back);

impl<Front: Fields, Back: Fields> Sealed for Both<Front, Back> {}

impl<Front: Fields, Back: Fields> Fields for Both<Front, Back> {
    const COUNT: usize = Front::COUNT + Back::COUNT;

    #[inline(always)]
    fn encoded_size(&self) -> usize {
        self.0.encoded_size().saturating_add(self.1.encoded_size())
    }

    #[inline(always)]
    unsafe fn encode(&self, writer: &mut Writer) {
        // SAFETY: the caller gives room for both parts, one after the other.
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
