//! The words in the file with the sum of a session's ring memory.

use std::sync::atomic::AtomicU64;

/// The words of the file.
#[derive(Debug, Default)]
#[repr(C)]
pub struct MemorySum {
    /// Bytes that are reserved for rings.
    pub bytes: AtomicU64,
    /// `CLOCK_MONOTONIC` in ns before which they are not counted again.
    pub count_again: AtomicU64,
}
