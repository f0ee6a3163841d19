//! Text: copied and searched for a NUL in one pass, inline, because texts in events are short. The code avoids callee-saved registers.
//!
//! Text is copied in pieces of equal size; the last one overlaps the previous one. Text that is shorter than a piece is copied in two overlapping
//! smaller pieces; up to three bytes are copied one by one.

use super::sealed::Sealed;
use super::value::{FieldValue, NulHandling, Value, Writer};
use crate::hint::{opaque, opaque_ptr, unlikely};

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

impl Writer {
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

/// Replaces NULs, and returns whether there were any.
pub(super) fn replace_nuls(bytes: &mut [u8]) -> bool {
    let mut nuls = bytes.iter_mut().filter(|byte| **byte == 0).peekable();
    let has_nul = nuls.peek().is_some();
    nuls.for_each(|byte| *byte = 0x1A); // ASCII SUB (substitute)
    has_nul
}

/// Copies the bytes, and returns whether one of them is a NUL; the copy may then be incomplete.
///
/// # Safety
///
/// `to` has room for `bytes.len()` bytes, which do not overlap `bytes`.
#[inline(always)]
pub(super) unsafe fn copy_text(bytes: &[u8], to: *mut u8) -> bool {
    // SAFETY: in each branch the text is at least as long as the pieces; the caller guarantees the room.
    unsafe {
        if bytes.len() > Sixteen::SIZE {
            if bytes.len() <= 2 * Sixteen::SIZE {
                return copy_two::<Sixteen>(bytes, to);
            }
            unlikely();
            return copy_pieces::<Sixteen>(bytes, to);
        }
        unlikely();
        if bytes.len() > Eight::SIZE {
            copy_two::<Eight>(bytes, to)
        } else if bytes.len() >= Four::SIZE {
            copy_two::<Four>(bytes, to)
        } else {
            copy_few(bytes, to)
        }
    }
}

/// A fixed number of bytes in a register.
trait Piece: Copy {
    const SIZE: usize;
    /// The initial value for [`with`](Self::with): no NUL seen.
    const NONE: Self;
    /// # Safety
    ///
    /// `SIZE` bytes are readable.
    unsafe fn load(from: *const u8) -> Self;
    /// # Safety
    ///
    /// `SIZE` bytes are writable.
    unsafe fn store(self, to: *mut u8);
    /// Adds a piece to the pieces seen so far.
    fn with(self, piece: Self) -> Self;
    /// Returns whether there was a NUL in the pieces.
    fn has_nul(self) -> bool;
}

/// # Safety
///
/// As for `copy_text`; the text has the length of one to two pieces.
#[inline(always)]
unsafe fn copy_two<P: Piece>(bytes: &[u8], to: *mut u8) -> bool {
    let (from, last) = (bytes.as_ptr(), bytes.len() - P::SIZE);
    // SAFETY: both pieces are inside the text, and inside the room.
    unsafe {
        let (first, second) = (P::load(from), P::load(from.add(last)));
        first.store(to);
        second.store(to.add(last));
        P::NONE.with(first).with(second).has_nul()
    }
}

/// # Safety
///
/// As for `copy_text`; the text has at least the length of one piece.
#[inline(always)]
unsafe fn copy_pieces<P: Piece>(bytes: &[u8], to: *mut u8) -> bool {
    let (from, last) = (bytes.as_ptr(), bytes.len() - P::SIZE);
    let (mut seen, mut end) = (P::NONE, P::SIZE);
    // SAFETY: each piece ends at `end`, which is below the length, and the last one at the end of the text: all are inside the text, and
    // inside the room.
    unsafe {
        while end < bytes.len() {
            let piece = P::load(from.add(end - P::SIZE));
            piece.store(to.add(end - P::SIZE));
            seen = seen.with(piece);
            end = opaque(end + P::SIZE);
        }
        let piece = P::load(from.add(last));
        piece.store(to.add(last));
        seen.with(piece).has_nul()
    }
}

/// Copies byte by byte: pieces of other sizes would need more registers.
///
/// # Safety
///
/// As for `copy_text`.
#[inline(always)]
unsafe fn copy_few(bytes: &[u8], to: *mut u8) -> bool {
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        if byte == 0 {
            return true;
        }
        // SAFETY: `at` is below the length.
        unsafe { to.add(at).write(byte) };
        at = opaque(at + 1);
    }
    false
}

#[cfg(all(target_arch = "x86_64", not(miri), not(tp_portable)))]
use vectors::{Eight, Four, Sixteen};
#[cfg(not(all(target_arch = "x86_64", not(miri), not(tp_portable))))]
use words::{Eight, Four, Sixteen};

/// Pieces in general registers.
#[cfg(not(all(target_arch = "x86_64", not(miri), not(tp_portable))))]
mod words {
    use super::Piece;

    /// The accumulated value has the lowest bit of each byte set as long as that byte was never zero.
    macro_rules! word {
        ($name:ident, $word:ty, $size:literal) => {
            #[derive(Clone, Copy)]
            pub(super) struct $name($word);

            impl Piece for $name {
                const SIZE: usize = $size;
                const NONE: Self = Self(<$word>::MAX / 0xff);

                #[inline(always)]
                unsafe fn load(from: *const u8) -> Self {
                    // SAFETY: the caller guarantees SIZE bytes; a byte array needs no alignment.
                    Self(<$word>::from_le_bytes(unsafe { from.cast::<[u8; $size]>().read() }))
                }

                #[inline(always)]
                unsafe fn store(self, to: *mut u8) {
                    // SAFETY: as above.
                    unsafe { to.cast::<[u8; $size]>().write(self.0.to_le_bytes()) }
                }

                #[inline(always)]
                fn with(self, piece: Self) -> Self {
                    const SEVENS: $word = <$word>::MAX / 0xff * 0x7f;
                    // The highest bit of each byte: set unless the byte is zero.
                    let not_zero = ((piece.0 & SEVENS) + SEVENS) | piece.0;
                    Self(self.0 & (not_zero >> 7))
                }

                #[inline(always)]
                fn has_nul(self) -> bool {
                    self.0 != Self::NONE.0
                }
            }
        };
    }

    word!(Four, u32, 4);
    word!(Eight, u64, 8);
    word!(Sixteen, u128, 16);
}

/// Pieces in SSE2 registers, which every x86-64 has: there are too few general registers, and saving some costs time.
#[cfg(all(target_arch = "x86_64", not(miri), not(tp_portable)))]
mod vectors {
    use super::Piece;
    use std::arch::asm;
    use std::arch::x86_64::{
        __m128i, _mm_cmpeq_epi8, _mm_loadl_epi64, _mm_loadu_si32, _mm_loadu_si128, _mm_min_epu8, _mm_movemask_epi8,
        _mm_setzero_si128, _mm_storel_epi64, _mm_storeu_si32, _mm_storeu_si128,
    };

    /// The accumulated value is the minimum of each byte.
    macro_rules! vector {
        ($name:ident, $size:literal, $load:ident, $store:ident) => {
            #[derive(Clone, Copy)]
            pub(super) struct $name(__m128i);

            impl Piece for $name {
                const SIZE: usize = $size;
                // SAFETY: both types have 16 bytes, and all values are valid.
                const NONE: Self = Self(unsafe { std::mem::transmute::<[u8; 16], __m128i>([0xff; 16]) });

                #[inline(always)]
                unsafe fn load(from: *const u8) -> Self {
                    // SAFETY: the caller guarantees SIZE bytes; the instruction needs no alignment.
                    let mut piece = unsafe { $load(from.cast()) };
                    // Keeps the copy and the search in one register.
                    // SAFETY: the block contains no instruction.
                    unsafe { asm!("/* {} */", inout(xmm_reg) piece, options(pure, nomem, nostack, preserves_flags)) };
                    Self(piece)
                }

                #[inline(always)]
                unsafe fn store(self, to: *mut u8) {
                    // SAFETY: as above.
                    unsafe { $store(to.cast(), self.0) }
                }

                #[inline(always)]
                fn with(self, piece: Self) -> Self {
                    // SAFETY: SSE2 is there.
                    Self(unsafe { _mm_min_epu8(self.0, piece.0) })
                }

                #[inline(always)]
                fn has_nul(self) -> bool {
                    const PLACES: i32 = (1 << $size) - 1;
                    // SAFETY: SSE2 is there.
                    unsafe { _mm_movemask_epi8(_mm_cmpeq_epi8(self.0, _mm_setzero_si128())) & PLACES != 0 }
                }
            }
        };
    }

    vector!(Four, 4, _mm_loadu_si32, _mm_storeu_si32);
    vector!(Eight, 8, _mm_loadl_epi64, _mm_storel_epi64);
    vector!(Sixteen, 16, _mm_loadu_si128, _mm_storeu_si128);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tests every length up to several pieces of the largest size, with a NUL at every place, or none; bytes beyond the end must not change.
    #[test]
    fn copies_all_and_finds_nuls() {
        for length in 0..70 {
            for nul in (0..length).map(Some).chain([None]) {
                let mut text: Vec<u8> = (0..length).map(|at| [b'a', 0x80, 0xff, 1][at % 4]).collect();
                if let Some(at) = nul {
                    text[at] = 0;
                }
                let mut room = vec![0x55_u8; length + 1];
                // SAFETY: there is room for one byte more.
                let found = unsafe { copy_text(&text, room.as_mut_ptr()) };
                assert_eq!((found, room[length]), (nul.is_some(), 0x55), "{text:?}");
                assert!(found || room[..length] == text, "{text:?}");
            }
        }
    }
}
