//! Arguments of functions with `#[traced]`: the type determines whether one is a field.
//!
//! The macro sees only the spelling of a type. From it follows the type `A` that the field would have; but `Duration`, for example, may be any type
//! with that name. [`Argument`] has `IS_FIELD` and `get` twice: inherent ones, if `T` gives an `A`, and those of the trait [`NoField`], for all
//! types. The compiler prefers the inherent ones if they exist.

use super::Scalar;
use std::fmt::{self, Display};
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// An argument of type `T`, which is a field if it gives an `A`.
pub struct Argument<'a, T: ?Sized, A>(&'a T, PhantomData<A>);

impl<T: ?Sized, A> fmt::Debug for Argument<'_, T, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Argument").finish_non_exhaustive()
    }
}

impl<'a, T: ?Sized, A> Argument<'a, T, A> {
    /// Wraps an argument.
    #[inline(always)]
    pub const fn new(argument: &'a T) -> Self {
        Self(argument, PhantomData)
    }
}

impl<'a, T: Gives<'a, A> + ?Sized, A> Argument<'a, T, A> {
    /// It is a field.
    pub const IS_FIELD: bool = true;

    /// The value for the span.
    #[inline(always)]
    pub fn get(self) -> A {
        self.0.give()
    }
}

/// Fallback items that all arguments have.
pub trait NoField {
    /// The type that the field would have.
    type Given: Absent;
    /// It is not a field.
    const IS_FIELD: bool = false;

    /// The value passed to the span in place of a field.
    #[inline(always)]
    fn get(self) -> Self::Given
    where
        Self: Sized,
    {
        Self::Given::absent()
    }
}

impl<T: ?Sized, A: Absent> NoField for Argument<'_, T, A> {
    type Given = A;
}

/// A type whose values are fields of type `A`.
pub trait Gives<'a, A> {
    /// The value.
    fn give(&'a self) -> A;
}

impl<T: Scalar> Gives<'_, T> for T {
    #[inline(always)]
    fn give(&self) -> T {
        *self
    }
}

impl<T: Scalar> Gives<'_, Self> for Option<T> {
    #[inline(always)]
    fn give(&self) -> Self {
        *self
    }
}

impl Gives<'_, Self> for Duration {
    #[inline(always)]
    fn give(&self) -> Self {
        *self
    }
}

impl Gives<'_, Self> for SystemTime {
    #[inline(always)]
    fn give(&self) -> Self {
        *self
    }
}

impl<'a> Gives<'a, &'a str> for str {
    #[inline(always)]
    fn give(&'a self) -> &'a str {
        self
    }
}

impl<'a> Gives<'a, &'a str> for String {
    #[inline(always)]
    fn give(&'a self) -> &'a str {
        self
    }
}

impl<'a> Gives<'a, &'a Path> for Path {
    #[inline(always)]
    fn give(&'a self) -> &'a Path {
        self
    }
}

impl<'a> Gives<'a, &'a Path> for PathBuf {
    #[inline(always)]
    fn give(&'a self) -> &'a Path {
        self
    }
}

impl<'a, T: Scalar> Gives<'a, &'a [T]> for [T] {
    #[inline(always)]
    fn give(&'a self) -> &'a [T] {
        self
    }
}

impl<'a, T: Scalar> Gives<'a, &'a [T]> for Vec<T> {
    #[inline(always)]
    fn give(&'a self) -> &'a [T] {
        self
    }
}

impl<'a, T: Display> Gives<'a, &'a dyn Display> for T {
    #[inline(always)]
    fn give(&'a self) -> &'a dyn Display {
        self
    }
}

/// The type of the placeholder for an argument that is not a field. It is never read.
pub trait Absent {
    /// Any value.
    fn absent() -> Self;
}

macro_rules! absent {
    ($($value:expr => $ty:ty $(, [$($parameters:tt)*])?;)*) => {$(
        impl $(<$($parameters)*>)? Absent for $ty {
            #[inline(always)]
            fn absent() -> Self {
                $value
            }
        }
    )*};
}

absent! {
    0 => u8; 0 => u16; 0 => u32; 0 => u64; 0 => usize;
    0 => i8; 0 => i16; 0 => i32; 0 => i64; 0 => isize;
    0.0 => f32; 0.0 => f64;
    false => bool;
    "" => &str;
    &[] => &[T], [T: Scalar];
    None => Option<T>, [T: Scalar];
    Duration::ZERO => Duration;
    SystemTime::UNIX_EPOCH => SystemTime;
    &"" => &dyn Display;
}

impl Absent for &Path {
    #[inline(always)]
    fn absent() -> Self {
        Path::new("")
    }
}
