//! The state that the owner of a buffer recorded when an event had no room, so that the next events need not check again.
//!
//! The next slot was not free, so no packet can be opened before the consumer releases one. Until then the open packet can get fuller, or be
//! closed by the flusher. So a record that did not fit will not fit later, nor will a larger one, as long as the consumer's position
//! is unchanged. A position that differs in any way, valid or not, sends the event to the full path.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Written by the owner inside a write, and read by it outside of one. Signal handlers that find it torn are inside that write, and use the nested
/// buffer.
#[derive(Debug, Default)]
pub(in crate::channel) struct FullMark {
    /// The consumer's position.
    released: AtomicU64,
    /// The smallest size of a record that has no room.
    smallest: AtomicUsize,
    /// Number of sizes of records without room, starting with the smallest; 0 if nothing is known. A record of a larger size is lost for another
    /// reason.
    sizes: AtomicUsize,
}

impl FullMark {
    /// Records that records of these sizes have no room while the consumer's position is `released`.
    pub(super) fn set(&self, released: u64, smallest: usize, largest: usize) {
        self.released.store(released, Ordering::Relaxed);
        self.smallest.store(smallest, Ordering::Relaxed);
        self.sizes.store((largest + 1).saturating_sub(smallest), Ordering::Relaxed);
    }

    /// Records that nothing is known.
    pub(super) fn clear(&self) {
        self.sizes.store(0, Ordering::Relaxed);
    }

    /// Returns whether records had no room, and the consumer's position is unchanged since.
    #[inline(always)]
    pub(super) fn is_current(&self, released: &AtomicU64) -> bool {
        self.sizes.load(Ordering::Relaxed) > 0 && self.is_at(released)
    }

    /// Returns whether a record of this size had no room, and the consumer's position is unchanged since.
    #[inline(always)]
    pub(super) fn covers(&self, size: usize, released: &AtomicU64) -> bool {
        size.wrapping_sub(self.smallest.load(Ordering::Relaxed)) < self.sizes.load(Ordering::Relaxed)
            && self.is_at(released)
    }

    #[inline(always)]
    fn is_at(&self, released: &AtomicU64) -> bool {
        // Relaxed: no write depends on it. Before a packet is written, the position is loaded with Acquire (R1).
        released.load(Ordering::Relaxed) == self.released.load(Ordering::Relaxed)
    }
}
