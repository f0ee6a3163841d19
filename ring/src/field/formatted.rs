//! Fields of the types `display` and `debug`: the output of these trait implementations.
//!
//! The text is written to a buffer on the stack before a record is reserved, and copied into the record from there: its length must be
//! known, and the code that writes it is the program's, which may panic, or fire events. This module allocates nothing.

use super::Text;
use std::fmt::{self, Debug, Display, Write};
use std::mem::MaybeUninit;

/// The mark at the end of a truncated text.
pub(super) const CUT: &str = "…";

/// A buffer for a text of at most `N` bytes. A longer text is truncated at the end of a character, and ends with `…`.
///
/// The number after the bytes is initially not 0: the compiler clears zeros together with neighbouring bytes that need not be initialised, here all
/// bytes.
#[derive(Debug)]
#[repr(C)]
pub struct TextBuffer<const N: usize> {
    bytes: [MaybeUninit<u8>; N],
    room: usize,
    is_cut: bool,
}

impl<const N: usize> TextBuffer<N> {
    /// An empty buffer. Its memory is not initialised, so that a large bound costs nothing for a short text.
    #[inline]
    pub const fn new() -> Self {
        const { assert!(N >= CUT.len(), "the bound of a text is at least 3 bytes") };
        Self { bytes: [MaybeUninit::uninit(); N], room: N, is_cut: false }
    }

    #[inline]
    fn used(&self) -> usize {
        N - self.room
    }

    fn push(&mut self, text: &str) {
        let used = self.used();
        for (slot, byte) in self.bytes[used..].iter_mut().zip(text.as_bytes()) {
            slot.write(*byte);
        }
        self.room -= text.len();
    }

    /// The text.
    #[inline]
    pub fn as_str(&self) -> &str {
        // SAFETY: `push` has initialised the first `used()` bytes, as whole characters: `cut` ends the text at the end of one.
        unsafe { str::from_utf8_unchecked(std::slice::from_raw_parts(self.bytes.as_ptr().cast(), self.used())) }
    }

    /// Copies the part of `text` that fits, and makes room for the mark at the end.
    #[cold]
    fn cut(&mut self, text: &str) {
        self.is_cut = true;
        self.push(&text[..boundary(text, self.room)]);
        self.room = N - boundary(self.as_str(), N - CUT.len());
        self.push(CUT);
    }
}

/// The end of the last character that ends at or before `at`.
pub(super) fn boundary(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

impl<const N: usize> Default for TextBuffer<N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const N: usize> Write for TextBuffer<N> {
    #[inline]
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.is_cut {
            // End the formatting: further text would not be kept.
            return Err(fmt::Error);
        }
        if text.len() <= self.room {
            self.push(text);
            return Ok(());
        }
        self.cut(text);
        Err(fmt::Error)
    }
}

/// The output of `Display`.
#[inline]
pub fn display<'b, const N: usize>(value: &(impl Display + ?Sized), buffer: &'b mut TextBuffer<N>) -> Text<'b> {
    // Ignore an error: the text was truncated, or the value's implementation failed; the text written so far is recorded.
    let _ = write!(buffer, "{value}");
    Text(buffer.as_str())
}

/// The output of `Debug` in one line.
#[inline]
pub fn debug<'b, const N: usize>(value: &(impl Debug + ?Sized), buffer: &'b mut TextBuffer<N>) -> Text<'b> {
    let _ = write!(buffer, "{value:?}");
    Text(buffer.as_str())
}

/// [`display`] of the value of an `Option`.
#[inline]
pub fn optional_display<'b, const N: usize>(
    value: &Option<impl Display>,
    buffer: &'b mut TextBuffer<N>,
) -> Option<Text<'b>> {
    value.as_ref().map(|value| display(value, buffer))
}

/// [`debug`] of the value of an `Option`.
#[inline]
pub fn optional_debug<'b, const N: usize>(
    value: &Option<impl Debug>,
    buffer: &'b mut TextBuffer<N>,
) -> Option<Text<'b>> {
    value.as_ref().map(|value| debug(value, buffer))
}
