//! The values of fields, and the list of an event's values: their size, their encoding, and their form for filters.
//!
//! A list of values is a list of pairs that ends in `()`, or a tree of such lists if there are many.

use super::sealed::Sealed;

/// The handling of a NUL inside a text, which would end the text for readers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NulHandling {
    /// Replaces it.
    Replace,
    /// Only counts it: the caller discards the record, which may be incomplete.
    Detect,
}

/// The destination of a record's bytes. Passed only to the generated `encode`.
#[derive(Debug)]
pub struct Writer {
    pub(super) at: *mut u8,
    pub(super) nul_handling: NulHandling,
    pub(super) nuls: u32,
}

impl Writer {
    /// # Safety
    ///
    /// There is room at `at` for all bytes that will be written.
    #[inline(always)]
    pub unsafe fn new(at: *mut u8, nul_handling: NulHandling) -> Self {
        Self { at, nul_handling, nuls: 0 }
    }

    #[inline(always)]
    pub(crate) fn at(&self) -> *mut u8 {
        self.at
    }

    /// # Safety
    ///
    /// There is room for the next `bytes` bytes, and they have been written.
    #[inline(always)]
    pub(crate) unsafe fn advance(&mut self, bytes: usize) {
        // SAFETY: the caller guarantees the room.
        self.at = unsafe { self.at.add(bytes) };
    }

    /// The number of texts with a NUL inside.
    #[inline(always)]
    pub(crate) fn nuls(&self) -> u32 {
        self.nuls
    }
}

/// A field's value in the form that filters and aggregates receive.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Value<'a> {
    /// An unsigned integer, or an enumeration over one.
    Unsigned(u64),
    /// A signed integer, or an enumeration over one.
    Signed(i64),
    /// A floating-point number.
    Float(f64),
    /// A boolean.
    Bool(bool),
    /// Text.
    Text(&'a str),
    /// The bytes of a path.
    Path(&'a [u8]),
    /// The value of an `Option` that is `None`.
    Absent,
    /// An array or a sequence.
    Elements(&'a dyn Elements),
}

/// The elements of an array or a sequence.
pub trait Elements: std::fmt::Debug {
    /// The number of elements.
    fn len(&self) -> usize;
    /// Returns whether there are no elements.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// The element at `index`; `None` if there is no such element.
    fn get(&self, index: usize) -> Option<Value<'_>>;
    /// The address of the first element, if all elements are contiguous in memory; otherwise null.
    fn as_ptr(&self) -> *const () {
        std::ptr::null()
    }
}

/// True if no object in memory is larger than [`MAX_SIZE`]: virtual addresses of these targets have at most 57 bits.
const IS_BOUNDED: bool =
    cfg!(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")) && usize::BITS == 64;

/// Maximum size of a field, if [`IS_BOUNDED`].
pub(super) const MAX_SIZE: usize = if IS_BOUNDED { 1 << (usize::BITS - 7) } else { usize::MAX };

/// A value of a field block: the macros create it, the marker stage writes it.
///
/// Sealed: the ring relies on `encode` to write exactly `encoded_size` bytes.
pub trait FieldValue: Sealed + Copy {
    /// The number of bytes that `encode` writes; the same at every call, and at most [`MAX_SIZE`].
    #[doc(hidden)]
    fn encoded_size(&self) -> usize;
    /// Writes the value.
    ///
    /// # Safety
    ///
    /// `writer` has room for `encoded_size` bytes.
    #[doc(hidden)]
    unsafe fn encode(&self, writer: &mut Writer);
    /// The value for filters and aggregates.
    #[doc(hidden)]
    fn value(&self) -> Value<'_>;
}

/// The evaluated fields of an event: `()`, `(first, rest)`, or [`Concat`] of two. Sealed.
pub trait Fields: Sealed + Copy {
    /// The number of fields.
    #[doc(hidden)]
    const COUNT: usize;
    /// True if the sum of the sizes may overflow; `encoded_size` then returns `usize::MAX`. Otherwise the sum is below a quarter of that.
    #[doc(hidden)]
    const MAY_SATURATE: bool = !IS_BOUNDED || Self::COUNT > MAX_FIELDS;
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
    /// The field at `index`; `None` if there is no such field.
    #[doc(hidden)]
    fn field(&self, index: usize) -> Option<Value<'_>>;
    /// The time of the event, if its site has read the clock; see [`At`].
    #[doc(hidden)]
    #[inline(always)]
    fn time(&self) -> Option<u64> {
        None
    }
}

/// The number of fields of at most [`MAX_SIZE`] bytes whose sizes are added without an overflow check.
const MAX_FIELDS: usize = 31;

/// The sum of two sizes.
#[inline(always)]
const fn sum(one: usize, other: usize, may_saturate: bool) -> usize {
    if may_saturate { one.saturating_add(other) } else { one + other }
}

/// The size of the fields preceded by `front` bytes, limited to `usize::MAX / 2`, which exceeds any packet.
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

/// Two lists in sequence, which avoids the compiler's recursion limit for a long list.
#[derive(Clone, Copy, Debug)]
pub struct Concat<Front, Back>(pub Front, pub Back);

impl<Front: Fields, Back: Fields> Sealed for Concat<Front, Back> {}

impl<Front: Fields, Back: Fields> Fields for Concat<Front, Back> {
    const COUNT: usize = Front::COUNT + Back::COUNT;
    const MAY_SATURATE: bool = Front::MAY_SATURATE || Back::MAY_SATURATE || Self::COUNT > MAX_FIELDS;

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

/// The fields of an event whose site has read the clock, because a field depends on the time: the event gets this time.
#[derive(Clone, Copy, Debug)]
pub struct At<V> {
    /// The time, in ns, that [`clock::now`](crate::clock::now) returned.
    pub time: u64,
    /// The fields.
    pub values: V,
}

impl<V: Fields> Sealed for At<V> {}

impl<V: Fields> Fields for At<V> {
    const COUNT: usize = V::COUNT;
    const MAY_SATURATE: bool = V::MAY_SATURATE;

    #[inline(always)]
    fn encoded_size(&self) -> usize {
        self.values.encoded_size()
    }

    #[inline(always)]
    unsafe fn encode(&self, writer: &mut Writer) {
        // SAFETY: the caller guarantees room for the values.
        unsafe { self.values.encode(writer) };
    }

    #[inline]
    fn field(&self, index: usize) -> Option<Value<'_>> {
        self.values.field(index)
    }

    #[inline(always)]
    fn time(&self) -> Option<u64> {
        Some(self.time)
    }
}
