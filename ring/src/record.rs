//! The header word of a record: 16 bits of event id, 48 bits of time.

use crate::clock::{TIME_SHIFT, Timestamp};
use crate::hint::materialize;

/// The size of the header word in bytes.
pub(crate) const HEADER_SIZE: usize = 8;

/// The time of an event, and its header word: `time << 16 | id`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head {
    pub(crate) time: u64,
    pub(crate) word: u64,
}

impl Head {
    #[inline(always)]
    pub(crate) fn new(id: u16, now: Timestamp) -> Self {
        // First what does not depend on the clock's result.
        let word = materialize(now.base.word.wrapping_add(u64::from(id)));
        Self { time: materialize(now.time()), word: materialize(word.wrapping_add(now.offset << TIME_SHIFT)) }
    }
}

/// Stores a record's header word, little-endian.
///
/// # Safety
///
/// Eight bytes at `at` are writable.
#[inline(always)]
pub(crate) unsafe fn write_header(at: *mut u8, word: u64) {
    // SAFETY: the caller guarantees eight writable bytes; a byte array needs no alignment.
    unsafe { at.cast::<[u8; HEADER_SIZE]>().write(word.to_le_bytes()) }
}
