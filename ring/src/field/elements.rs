//! Arrays and sequences of scalars.

use super::scalar::Scalar;
use super::sealed::Sealed;
use super::value::{Elements, FieldValue, MAX_SIZE, Value, Writer};

/// Writes elements in order.
///
/// # Safety
///
/// `writer` has room for `elements.len() * T::WIDTH` bytes.
#[inline(always)]
unsafe fn write_elements<T: Scalar>(elements: &[T], writer: &mut Writer) {
    let bytes = elements.len() * T::WIDTH;
    // SAFETY: the caller guarantees the room. If T is PLAIN, each element is WIDTH initialised bytes in memory, without padding.
    unsafe {
        if T::PLAIN {
            writer.at().copy_from_nonoverlapping(elements.as_ptr().cast(), bytes);
        } else {
            for (i, element) in elements.iter().enumerate() {
                element.store(writer.at().add(i * T::WIDTH));
            }
        }
        writer.advance(bytes);
    }
}

/// A fixed number of elements.
#[derive(Clone, Copy, Debug)]
pub struct Array<'a, T, const N: usize>(pub &'a [T; N]);

impl<T: Scalar, const N: usize> Sealed for Array<'_, T, N> {}

impl<T: Scalar + std::fmt::Debug, const N: usize> FieldValue for Array<'_, T, N> {
    #[inline(always)]
    fn encoded_size(&self) -> usize {
        // Saturating, because on 32-bit targets `usize` elements are wider in a record than in memory.
        N.saturating_mul(T::WIDTH)
    }

    #[inline(always)]
    unsafe fn encode(&self, writer: &mut Writer) {
        // SAFETY: the caller guarantees room for `encoded_size` bytes, N elements.
        unsafe { write_elements(self.0, writer) }
    }

    #[inline]
    fn value(&self) -> Value<'_> {
        Value::Elements(self)
    }
}

impl<T: Scalar + std::fmt::Debug, const N: usize> Elements for Array<'_, T, N> {
    fn len(&self) -> usize {
        N
    }

    fn get(&self, index: usize) -> Option<Value<'_>> {
        self.0.get(index).map(|element| element.dynamic())
    }

    fn as_ptr(&self) -> *const () {
        self.0.as_ptr().cast()
    }
}

/// Any number of elements, preceded by their number.
#[derive(Clone, Copy, Debug)]
pub struct Sequence<'a, T>(pub &'a [T]);

impl<T: Scalar> Sealed for Sequence<'_, T> {}

impl<T: Scalar + std::fmt::Debug> FieldValue for Sequence<'_, T> {
    #[inline(always)]
    fn encoded_size(&self) -> usize {
        // Saturating, as for arrays. A length above 32 bits never reaches `encode`, because no packet is that large.
        self.0.len().saturating_mul(T::WIDTH).min(MAX_SIZE - 4) + 4
    }

    #[inline(always)]
    unsafe fn encode(&self, writer: &mut Writer) {
        // SAFETY: the caller guarantees room for `encoded_size` bytes: the length, then the elements.
        unsafe {
            (self.0.len() as u32).store(writer.at());
            writer.advance(4);
            write_elements(self.0, writer);
        }
    }

    #[inline]
    fn value(&self) -> Value<'_> {
        Value::Elements(self)
    }
}

impl<T: Scalar + std::fmt::Debug> Elements for Sequence<'_, T> {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn get(&self, index: usize) -> Option<Value<'_>> {
        self.0.get(index).map(|element| element.dynamic())
    }

    fn as_ptr(&self) -> *const () {
        self.0.as_ptr().cast()
    }
}
