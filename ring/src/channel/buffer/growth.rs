//! When a thread needs a larger ring than the small one in which it has begun.

use std::sync::atomic::{AtomicU32, Ordering};

/// How many packets of a small ring a thread fills before it looks for a large one: half of them.
const MANY: u32 = 8;

/// What a thread has recorded in a small ring. Written by the owner.
#[derive(Debug, Default)]
pub(super) struct Growth {
    /// The packets that it has filled, without the open one.
    full: AtomicU32,
}

impl Growth {
    /// A thread has taken the ring.
    pub(super) fn begin(&self) {
        self.full.store(0, Ordering::Relaxed);
    }

    /// A packet is full.
    pub(super) fn count_full(&self) {
        self.full.store(self.full.load(Ordering::Relaxed).saturating_add(1), Ordering::Relaxed);
    }

    /// Whether the thread, whose open packet is full, records so much that a large ring is worth its memory.
    pub(super) fn is_outgrown(&self) -> bool {
        self.full.load(Ordering::Relaxed) + 1 >= MANY
    }
}
