//! The header word of a record: 16 bits of event id, 48 bits of time.

use crate::clock::{TIME_SHIFT, Timestamp};
use crate::hint::materialize;

/// The size of the header word in bytes.
pub(crate) const HEADER_SIZE: usize = 8;

/// When an event happened, and the word that says so and which it is: `time << 16 | id`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head {
    pub(crate) time: u64,
    pub(crate) word: u64,
}

impl Head {
    #[inline(always)]
    pub(crate) fn new(id: u16, now: Timestamp) -> Self {
        // What is known before the clock is there comes first.
        let word = materialize(now.base.word.wrapping_add(u64::from(id)));
        Self { time: materialize(now.time()), word: materialize(word.wrapping_add(now.offset << TIME_SHIFT)) }
    }
}

/// Stores a record's header word, little-endian.
///
/// # Safety
///
/// Eight bytes from `at` on are writable.
#[inline(always)]
pub(crate) unsafe fn write_header(at: *mut u8, word: u64) {
    // SAFETY: the caller gives eight writable bytes; an array of bytes has no alignment.
    unsafe { at.cast::<[u8; HEADER_SIZE]>().write(word.to_le_bytes()) }
}
