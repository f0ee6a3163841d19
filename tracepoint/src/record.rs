//! The header word of a record: 16 bits of event id, 48 bits of time.

/// The size of the header word in bytes.
pub(crate) const HEADER_SIZE: usize = 8;

/// Stores a record's header word: `time << 16 | id`, little-endian.
///
/// # Safety
///
/// Eight bytes from `at` on are writable.
#[inline(always)]
pub(crate) unsafe fn write_header(at: *mut u8, id: u16, time: u64) {
    let word = time << 16 | id as u64;
    // SAFETY: the caller gives eight writable bytes; an array of bytes has no alignment.
    unsafe { at.cast::<[u8; HEADER_SIZE]>().write(word.to_le_bytes()) }
}
