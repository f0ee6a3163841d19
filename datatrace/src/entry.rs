//! Entries: scalars, packed one after the other, little-endian.

/// A number of fixed size in an entry: little-endian, unaligned. `bool` is one byte, 0 or 1.
pub trait Scalar: Copy + sealed::Sealed {
    /// Size in bytes.
    const SIZE: usize;

    /// Writes it to the first [`Self::SIZE`] bytes of `place`.
    fn write(self, place: &mut [u8]);
}

/// The arguments of one entry, as a list of pairs: `(a, (b, (c, ())))`. [`pack!`](crate::pack) makes one of any number of
/// arguments.
pub trait Entry: Copy {
    /// Size in bytes.
    const SIZE: usize;

    /// Writes it to the first [`Self::SIZE`] bytes of `place`.
    fn write(self, place: &mut [u8]);
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! scalars {
    ($($type:ty),*) => {$(
        impl sealed::Sealed for $type {}

        impl Scalar for $type {
            const SIZE: usize = size_of::<$type>();

            #[inline(always)]
            fn write(self, place: &mut [u8]) {
                place[..Self::SIZE].copy_from_slice(&self.to_le_bytes());
            }
        }
    )*};
}

scalars!(u8, u16, u32, u64, u128, i8, i16, i32, i64, i128, f32, f64);

impl sealed::Sealed for bool {}

impl Scalar for bool {
    const SIZE: usize = 1;

    #[inline(always)]
    fn write(self, place: &mut [u8]) {
        u8::from(self).write(place);
    }
}

impl Entry for () {
    const SIZE: usize = 0;

    #[inline(always)]
    fn write(self, _place: &mut [u8]) {}
}

impl<A: Scalar, B: Entry> Entry for (A, B) {
    const SIZE: usize = A::SIZE + B::SIZE;

    #[inline(always)]
    fn write(self, place: &mut [u8]) {
        let (first, rest) = place.split_at_mut(A::SIZE);
        self.0.write(first);
        self.1.write(rest);
    }
}

/// An [`Entry`] of any number of scalars.
///
/// ```
/// use datatrace::Entry;
///
/// let mut bytes = [0; 7];
/// datatrace::pack!(1u16, -1i8, 7u32).write(&mut bytes);
/// assert_eq!(bytes, [1, 0, 0xFF, 7, 0, 0, 0]);
/// ```
#[macro_export]
macro_rules! pack {
    () => { () };
    ($first:expr $(, $rest:expr)* $(,)?) => { ($first, $crate::pack!($($rest),*)) };
}

/// Traces any number of scalars as one entry: the original's `dtTrace`*n*.
///
/// ```no_run
/// # let object = datatrace::TraceObject::create("ip", None, 10_000, 3)?;
/// datatrace::trace!(object, 4u8, 17u8, 1500u16, 0x0A00_0001u32, 0x0A00_0002u32)?;
/// # Ok::<(), datatrace::Error>(())
/// ```
#[macro_export]
macro_rules! trace {
    ($object:expr, $($argument:expr),+ $(,)?) => { $object.trace($crate::pack!($($argument),+)) };
}

/// Defines `trace1` to `trace8` for a type that has `trace`. Called with `self` and with the receiver's form.
macro_rules! numbered {
    ($self:ident, $receiver:tt) => {
        $crate::entry::numbered!(@one $self, $receiver, trace1, "1 scalar", 1, A a);
        $crate::entry::numbered!(@one $self, $receiver, trace2, "2 scalars", 2, A a, B b);
        $crate::entry::numbered!(@one $self, $receiver, trace3, "3 scalars", 3, A a, B b, C c);
        $crate::entry::numbered!(@one $self, $receiver, trace4, "4 scalars", 4, A a, B b, C c, D d);
        $crate::entry::numbered!(@one $self, $receiver, trace5, "5 scalars", 5, A a, B b, C c, D d, E e);
        $crate::entry::numbered!(@one $self, $receiver, trace6, "6 scalars", 6, A a, B b, C c, D d, E e, F f);
        $crate::entry::numbered!(@one $self, $receiver, trace7, "7 scalars", 7, A a, B b, C c, D d, E e, F f, G g);
        $crate::entry::numbered!(@one $self, $receiver, trace8, "8 scalars", 8, A a, B b, C c, D d, E e, F f, G g, H h);
    };
    (@one $self:ident, [$($receiver:tt)+], $name:ident, $what:literal, $n:literal, $($type:ident $argument:ident),+) => {
        #[doc = concat!("Traces ", $what, " as one entry. The original's `dtTrace", $n, "`.")]
        ///
        /// # Errors
        ///
        /// The errors of [`trace`](Self::trace).
        #[inline]
        #[allow(clippy::too_many_arguments, clippy::many_single_char_names)]
        pub fn $name<$($type: $crate::Scalar),+>($($receiver)+, $($argument: $type),+) -> Result<(), $crate::Error> {
            $self.trace($crate::pack!($($argument),+))
        }
    };
}
pub(crate) use numbered;
