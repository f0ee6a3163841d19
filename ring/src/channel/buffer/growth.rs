//! Determines when a thread needs a larger ring than its first, small one.

use std::sync::atomic::{AtomicU32, Ordering};

/// Number of packets of a small ring that a thread fills before it looks for a large one: half of them.
const MANY: u32 = 8;

/// The amount that a thread has recorded in a small ring. Written by the owner.
#[derive(Debug, Default)]
pub(super) struct Growth {
    /// Number of packets that it has filled, without the open one.
    full: AtomicU32,
}

impl Growth {
    /// Starts counting for a thread that has taken the ring.
    pub(super) fn begin(&self) {
        self.full.store(0, Ordering::Relaxed);
    }

    /// Counts a full packet.
    pub(super) fn count_full(&self) {
        self.full.store(self.full.load(Ordering::Relaxed).saturating_add(1), Ordering::Relaxed);
    }

    /// Returns whether the thread, whose open packet is full, records so much that a large ring is worth its memory.
    pub(super) fn is_outgrown(&self) -> bool {
        self.full.load(Ordering::Relaxed) + 1 >= MANY
    }
}
