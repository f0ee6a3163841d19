//! Values of any kind: how many bytes they take, how they are written, how a filter sees them.

use super::copy::copy_text;
use super::sealed::Sealed;
use crate::hint::{opaque_ptr, unlikely};

/// What becomes of a NUL inside a text, which would end there for who reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NulHandling {
    /// It is replaced.
    Replace,
    /// What was written with it is not used, and need not be whole.
    Detect,
}

/// Where the bytes of a record go. Given to the generated `encode` only.
#[derive(Debug)]
pub struct Writer {
    at: *mut u8,
    treatment: NulHandling,
    nuls: u32,
}

impl Writer {
    /// # Safety
    ///
    /// From `at` on there is room for all that will be written.
    #[inline(always)]
    pub unsafe fn new(at: *mut u8, treatment: NulHandling) -> Self {
        Self { at, treatment, nuls: 0 }
    }

    #[inline(always)]
    pub(crate) fn at(&self) -> *mut u8 {
        self.at
    }

    /// # Safety
    ///
    /// The next `bytes` bytes belong to the room and were written.
    #[inline(always)]
    pub(crate) unsafe fn advance(&mut self, bytes: usize) {
        // SAFETY: the caller stays inside the room.
        self.at = unsafe { self.at.add(bytes) };
    }

    /// How many texts had a NUL inside.
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
        // SAFETY: the caller gives the room; the source is a slice elsewhere, so nothing overlaps.
        let has_nul = unsafe {
            self.at.add(bytes.len()).write(0);
            match self.treatment {
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
        // SAFETY: all of it was written.
        unsafe { self.advance(bytes.len() + 1) };
    }
}

/// Whether there was one.
fn replace_nuls(bytes: &mut [u8]) -> bool {
    /// ASCII "substitute": what stands where a character cannot be shown.
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
    /// How many there are.
    fn len(&self) -> usize;
    /// Whether there is none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// The element at `index`, or `None` past the end.
    fn get(&self, index: usize) -> Option<Value<'_>>;
}

/// Whether no memory of a process is larger than [`MAX_SIZE`]: the addresses of these have 57 bits and fewer.
pub(super) const IS_BOUNDED: bool =
    cfg!(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")) && usize::BITS == 64;

/// What no field's size is above, if that is so.
pub(super) const MAX_SIZE: usize = if IS_BOUNDED { 1 << (usize::BITS - 7) } else { usize::MAX };

/// One value of a field block: the macros build them, the marker stage writes them.
///
/// Sealed: the ring trusts `encode` to write what `encoded_size` said.
pub trait FieldValue: Sealed + Copy {
    /// How many bytes `encode` will write; the same at every call, and at most [`MAX_SIZE`].
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
        // SAFETY: the caller gives room for `encoded_size` bytes, the text and its NUL.
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
        // SAFETY: the caller gives room for `encoded_size` bytes, the path and its NUL.
        unsafe { writer.text(self.0) }
    }

    #[inline]
    fn value(&self) -> Value<'_> {
        Value::Path(self.0)
    }
}
