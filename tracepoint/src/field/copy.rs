//! Copies text and looks for a NUL in it at once, without a call: texts in events are short.
//!
//! Pieces of equal size, the last one laid over the end of the one before. What is shorter than two pieces is two smaller ones.

use crate::hint::opaque;

/// Whether there is a NUL in the bytes, which are copied.
///
/// # Safety
///
/// `to` has room for `bytes.len()` bytes, elsewhere.
#[inline(always)]
pub(super) unsafe fn copy_text(bytes: &[u8], to: *mut u8) -> bool {
    // SAFETY: each branch has a piece's size or more; the caller gives the room.
    unsafe {
        match bytes.len() {
            0 => false,
            1..=3 => copy_few(bytes, to),
            4..=8 => copy_two::<Four>(bytes, to),
            9..=16 => copy_two::<Eight>(bytes, to),
            length if length <= 2 * Largest::SIZE => copy_two::<Largest>(bytes, to),
            _ => copy_pieces::<Largest>(bytes, to),
        }
    }
}

/// So many bytes in a register.
trait Piece: Copy {
    const SIZE: usize;
    /// What [`with`](Self::with) begins with: no NUL was seen.
    const NONE: Self;
    /// # Safety
    ///
    /// So many bytes can be read.
    unsafe fn load(from: *const u8) -> Self;
    /// # Safety
    ///
    /// So many bytes can be written.
    unsafe fn store(self, to: *mut u8);
    /// What was seen so far, and another piece.
    fn with(self, piece: Self) -> Self;
    /// Whether a NUL was among the pieces.
    fn has_nul(self) -> bool;
}

/// # Safety
///
/// As `copy_text`; from one piece to two.
#[inline(always)]
unsafe fn copy_two<P: Piece>(bytes: &[u8], to: *mut u8) -> bool {
    let (from, last) = (bytes.as_ptr(), bytes.len() - P::SIZE);
    // SAFETY: the first piece and the last one are inside the bytes, and inside the room.
    unsafe {
        let (first, second) = (P::load(from), P::load(from.add(last)));
        first.store(to);
        second.store(to.add(last));
        P::NONE.with(first).with(second).has_nul()
    }
}

/// # Safety
///
/// As `copy_text`; at least one piece.
#[inline(always)]
unsafe fn copy_pieces<P: Piece>(bytes: &[u8], to: *mut u8) -> bool {
    let (from, last) = (bytes.as_ptr(), bytes.len() - P::SIZE);
    let mut seen = P::NONE;
    let mut at = 0;
    // SAFETY: `at` is below `last`, and the last piece begins there, so that all are inside the bytes, and inside the room.
    unsafe {
        while at < last {
            let piece = P::load(from.add(at));
            piece.store(to.add(at));
            seen = seen.with(piece);
            at = opaque(at + P::SIZE);
        }
        let piece = P::load(from.add(last));
        piece.store(to.add(last));
        seen.with(piece).has_nul()
    }
}

/// # Safety
///
/// As `copy_text`; one to three bytes.
#[inline(always)]
unsafe fn copy_few(bytes: &[u8], to: *mut u8) -> bool {
    // The first, the one in the middle and the last; some of them are the same.
    let (from, middle, last) = (bytes.as_ptr(), bytes.len() / 2, bytes.len() - 1);
    // SAFETY: below the length.
    unsafe {
        let [a, b, c] = [from.read(), from.add(middle).read(), from.add(last).read()];
        to.write(a);
        to.add(middle).write(b);
        to.add(last).write(c);
        a == 0 || b == 0 || c == 0
    }
}

/// Words of the processor. What was seen has the lowest bit of a byte for as long as that was never zero.
macro_rules! word {
    ($name:ident, $word:ty, $size:literal) => {
        #[derive(Clone, Copy)]
        struct $name($word);

        impl Piece for $name {
            const SIZE: usize = $size;
            const NONE: Self = Self(<$word>::MAX / 0xff);

            #[inline(always)]
            unsafe fn load(from: *const u8) -> Self {
                // SAFETY: the caller gives so many bytes; an array of bytes has no alignment.
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

#[cfg(not(all(target_arch = "x86_64", not(miri), not(tp_portable))))]
use Eight as Largest;
#[cfg(all(target_arch = "x86_64", not(miri), not(tp_portable)))]
use vector::Sixteen as Largest;

#[cfg(all(target_arch = "x86_64", not(miri), not(tp_portable)))]
mod vector {
    use super::Piece;
    use std::arch::x86_64::{
        __m128i, _mm_cmpeq_epi8, _mm_loadu_si128, _mm_min_epu8, _mm_movemask_epi8, _mm_setzero_si128, _mm_storeu_si128,
    };

    /// A register of SSE2, which every x86-64 has.
    #[derive(Clone, Copy)]
    pub(super) struct Sixteen(__m128i);

    impl Piece for Sixteen {
        const SIZE: usize = 16;
        // SAFETY: 16 bytes in both.
        const NONE: Self = Self(unsafe { std::mem::transmute::<[u8; 16], __m128i>([0xff; 16]) });

        #[inline(always)]
        unsafe fn load(from: *const u8) -> Self {
            // SAFETY: the caller gives 16 bytes; this instruction wants no alignment.
            Self(unsafe { _mm_loadu_si128(from.cast()) })
        }

        #[inline(always)]
        unsafe fn store(self, to: *mut u8) {
            // SAFETY: as above.
            unsafe { _mm_storeu_si128(to.cast(), self.0) }
        }

        /// The smallest byte in each place.
        #[inline(always)]
        fn with(self, piece: Self) -> Self {
            // SAFETY: SSE2 is there.
            Self(unsafe { _mm_min_epu8(self.0, piece.0) })
        }

        #[inline(always)]
        fn has_nul(self) -> bool {
            // SAFETY: SSE2 is there.
            unsafe { _mm_movemask_epi8(_mm_cmpeq_epi8(self.0, _mm_setzero_si128())) != 0 }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every length up to some pieces of the largest size, and a NUL in every place, or none; nothing beyond the end is touched.
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
                assert_eq!(found, nul.is_some(), "{text:?}");
                assert_eq!((&room[..length], room[length]), (&text[..], 0x55));
            }
        }
    }
}
