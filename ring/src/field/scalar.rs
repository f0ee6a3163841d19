//! Values of a fixed width.

use super::sealed::Sealed;
use super::value::{FieldValue, Value, Writer};

/// A type of fixed width, for fields and array elements. Sealed.
pub trait Scalar: Copy + Sealed + 'static {
    /// The size in a record, in bytes.
    #[doc(hidden)]
    const WIDTH: usize;
    /// True if a slice of this type has the same bytes in memory as in a record.
    #[doc(hidden)]
    const PLAIN: bool;
    /// Stores the value.
    ///
    /// # Safety
    ///
    /// `WIDTH` bytes at `to` are writable.
    #[doc(hidden)]
    unsafe fn store(self, to: *mut u8);
    /// The value for filters and aggregates.
    #[doc(hidden)]
    fn dynamic(self) -> Value<'static>;
}

macro_rules! scalar {
    ($($ty:ty as $wire:ty => $variant:ident($dynamic:ty)),+ $(,)?) => {$(
        impl Sealed for $ty {}

        impl Scalar for $ty {
            const WIDTH: usize = size_of::<$wire>();
            const PLAIN: bool = size_of::<$ty>() == size_of::<$wire>() && cfg!(target_endian = "little");

            #[inline(always)]
            unsafe fn store(self, to: *mut u8) {
                #[allow(clippy::cast_sign_loss, clippy::cast_possible_wrap)]
                let bytes = (self as $wire).to_le_bytes();
                // SAFETY: the caller guarantees WIDTH writable bytes; a byte array needs no alignment.
                unsafe { to.cast::<[u8; size_of::<$wire>()]>().write(bytes) }
            }

            #[inline]
            fn dynamic(self) -> Value<'static> {
                Value::$variant(self as $dynamic)
            }
        }
    )+};
}

scalar! {
    u8 as u8 => Unsigned(u64),
    u16 as u16 => Unsigned(u64),
    u32 as u32 => Unsigned(u64),
    u64 as u64 => Unsigned(u64),
    usize as u64 => Unsigned(u64),
    i8 as i8 => Signed(i64),
    i16 as i16 => Signed(i64),
    i32 as i32 => Signed(i64),
    i64 as i64 => Signed(i64),
    isize as i64 => Signed(i64),
    f32 as f32 => Float(f64),
    f64 as f64 => Float(f64),
}

impl Sealed for bool {}

impl Scalar for bool {
    const WIDTH: usize = 1;
    const PLAIN: bool = true; // a bool is one byte, 0 or 1, by the language

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: the caller guarantees one writable byte.
        unsafe { to.write(u8::from(self)) }
    }

    #[inline]
    fn dynamic(self) -> Value<'static> {
        Value::Bool(self)
    }
}

impl<T: Scalar> FieldValue for T {
    #[inline(always)]
    fn encoded_size(&self) -> usize {
        T::WIDTH
    }

    #[inline(always)]
    unsafe fn encode(&self, writer: &mut Writer) {
        // SAFETY: the caller guarantees room for `encoded_size` bytes, which is WIDTH.
        unsafe {
            self.store(writer.at());
            writer.advance(T::WIDTH);
        }
    }

    #[inline]
    fn value(&self) -> Value<'_> {
        self.dynamic()
    }
}

/// An integer recorded in network order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Be<T>(pub T);

macro_rules! network_order {
    ($($ty:ty as $wire:ty),+ $(,)?) => {$(
        impl Sealed for Be<$ty> {}

        impl FieldValue for Be<$ty> {
            #[inline(always)]
            fn encoded_size(&self) -> usize {
                size_of::<$wire>()
            }

            #[inline(always)]
            unsafe fn encode(&self, writer: &mut Writer) {
                let bytes = (self.0 as $wire).to_be_bytes();
                // SAFETY: the caller guarantees room for `encoded_size` bytes.
                unsafe {
                    writer.at().cast::<[u8; size_of::<$wire>()]>().write(bytes);
                    writer.advance(size_of::<$wire>());
                }
            }

            #[inline]
            fn value(&self) -> Value<'_> {
                self.0.dynamic()
            }
        }
    )+};
}

network_order!(
    u8 as u8,
    u16 as u16,
    u32 as u32,
    u64 as u64,
    usize as u64,
    i8 as i8,
    i16 as i16,
    i32 as i32,
    i64 as i64,
    isize as i64
);
