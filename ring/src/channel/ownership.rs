//! Whose a ring is: the word of its header that says so, and what orders the changes.
//!
//! ```text
//!   SPARE (in the pool) ──take: the thread's first event──▶ OWNED ──thread exit──▶ ENDED ──drained, or recycled──▶ SPARE
//! ```
//!
//! SPARE → OWNED comes after the swap that takes the ring out of the pool. OWNED → ENDED is a Release store by the owner (L1), whose
//! Acquire partner is the drain's look at the state: from there on the drain is the one who may touch what was the owner's.

use crate::primitive::{AtomicU32, Ordering};

const SPARE: u32 = 0;
const OWNED: u32 = 1;
const ENDED: u32 = 2;

/// The state of a ring.
#[derive(Debug)]
#[repr(transparent)]
pub(super) struct Ownership(AtomicU32);

impl Ownership {
    /// Nobody's. Memory of zeros is that, too.
    #[cfg(loom)]
    pub(super) fn spare() -> Self {
        Self(AtomicU32::new(SPARE))
    }

    /// A thread has taken it.
    pub(super) fn own(&self) {
        self.0.store(OWNED, Ordering::Relaxed);
    }

    /// The owner is gone for good.
    pub(super) fn end(&self) {
        // L1: pairs with the Acquire load in `has_ended`.
        self.0.store(ENDED, Ordering::Release);
    }

    /// Whether the owner is gone.
    pub(super) fn has_ended(&self) -> bool {
        // L1: pairs with the Release store in `end`.
        self.0.load(Ordering::Acquire) == ENDED
    }

    /// It is ready for another.
    pub(super) fn recycle(&self) {
        self.0.store(SPARE, Ordering::Relaxed);
    }
}
