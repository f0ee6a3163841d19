//! Values of fields: their size, their encoding, and their form for filters.

use super::copy::copy_text;
use super::sealed::Sealed;
use crate::hint::{opaque_ptr, unlikely};

/// How a NUL inside a text is handled, which would end the text for readers.
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
    at: *mut u8,
    nul_handling: NulHandling,
    nuls: u32,
}

impl Writer {
    /// # Safety
    ///
    /// There is room at `at` for all that will be written.
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
    /// There is room for the next `bytes` bytes, and they were written.
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

    /// Writes text and its NUL.
    ///
    /// # Safety
    ///
    /// There is room for `bytes.len() + 1` bytes.
    #[inline(always)]
    unsafe fn text(&mut self, bytes: &[u8]) {
        self.at = opaque_ptr(self.at);
        // SAFETY: the caller guarantees the room; the source is a slice outside the ring, so it does not overlap.
        let has_nul = unsafe {
            self.at.add(bytes.len()).write(0);
            match self.nul_handling {
                NulHandling::Detect => copy_text(bytes, self.at),
                NulHandling::Replace => {
                    self.at.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
                    replace_nuls(std::slice::from_raw_parts_mut(self.at, bytes.len()))
                }
            }
        };
        if has_nul {
            unlikely();
            self.nuls += 1;
        }
        // SAFETY: these bytes were written above.
        unsafe { self.advance(bytes.len() + 1) };
    }
}

/// Replaces NULs. Returns whether there was one.
fn replace_nuls(bytes: &mut [u8]) -> bool {
    /// ASCII SUB (substitute).
    const SUBSTITUTE: u8 = 0x1A;
    let mut nuls = bytes.iter_mut().filter(|byte| **byte == 0).peekable();
    let has_nul = nuls.peek().is_some();
    nuls.for_each(|byte| *byte = SUBSTITUTE);
    has_nul
}

/// A field's value as filters and aggregates see it.
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
    /// An array or a sequence.
    Elements(&'a dyn Elements),
}

/// The elements of an array or a sequence.
pub trait Elements: std::fmt::Debug {
    /// The number of elements.
    fn len(&self) -> usize;
    /// Whether there is none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// The element at `index`, or `None` past the end.
    fn get(&self, index: usize) -> Option<Value<'_>>;
}

/// Whether no object in memory is larger than [`MAX_SIZE`]: virtual addresses of these targets have at most 57 bits.
pub(super) const IS_BOUNDED: bool =
    cfg!(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")) && usize::BITS == 64;

/// The largest size of a field, if [`IS_BOUNDED`].
pub(super) const MAX_SIZE: usize = if IS_BOUNDED { 1 << (usize::BITS - 7) } else { usize::MAX };

/// One value of a field block: the macros build them, the marker stage writes them.
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

/// Text in UTF-8.
#[derive(Clone, Copy, Debug)]
pub struct Text<'a>(pub &'a str);

impl Sealed for Text<'_> {}

impl FieldValue for Text<'_> {
    #[inline(always)]
    fn encoded_size(&self) -> usize {
        self.0.len() + 1
    }

    #[inline(always)]
    unsafe fn encode(&self, writer: &mut Writer) {
        // SAFETY: the caller guarantees room for `encoded_size` bytes, the text and its NUL.
        unsafe { writer.text(self.0.as_bytes()) }
    }

    #[inline]
    fn value(&self) -> Value<'_> {
        Value::Text(self.0)
    }
}

/// The bytes of a path.
#[derive(Clone, Copy, Debug)]
pub struct PathBytes<'a>(pub &'a [u8]);

impl Sealed for PathBytes<'_> {}

impl FieldValue for PathBytes<'_> {
    #[inline(always)]
    fn encoded_size(&self) -> usize {
        self.0.len() + 1
    }

    #[inline(always)]
    unsafe fn encode(&self, writer: &mut Writer) {
        // SAFETY: the caller guarantees room for `encoded_size` bytes, the path and its NUL.
        unsafe { writer.text(self.0) }
    }

    #[inline]
    fn value(&self) -> Value<'_> {
        Value::Path(self.0)
    }
}
