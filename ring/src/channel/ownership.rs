//! The ownership of a ring: a word in its header, and the orderings of its transitions.
//!
//! ```text
//!              ┌──────────── the owner hands it on: it has closed its packets, and puts the ring into the pool ─────────────┐
//!              ▼                                                                                                            │
//!   SPARE (in the pool) ──take: the thread's first event──▶ OWNED ──thread exit, if it is not handed on──▶ ENDED            │
//!              ▲                                              └──────────────────────────────────────────────│──────────────┘
//!              └──────────────────────────────── recycled, or drained and parked ────────────────────────────┘
//! ```
//!
//! SPARE → OWNED follows the swap that takes the ring out of the pool. OWNED → SPARE comes before the compare-and-swap that puts it there (L2): the
//! next owner sees all that the last one has stored. OWNED → ENDED is a Release store by the owner (L1), whose partner is
//! the consumer's Acquire load of the state: from then on the consumer may access the owner's part of the ring. One of the two ends
//! each ownership, so a ring is put into the pool either by its owner or by the consumer.

use crate::primitive::{AtomicU32, Ordering};

const SPARE: u32 = 0;
const OWNED: u32 = 1;
const ENDED: u32 = 2;

/// The state of a ring.
#[derive(Debug)]
#[repr(transparent)]
pub(super) struct Ownership(AtomicU32);

impl Ownership {
    /// Creates the state without an owner, the same as zeroed memory.
    #[cfg(loom)]
    pub(super) fn spare() -> Self {
        Self(AtomicU32::new(SPARE))
    }

    /// Records that a thread has taken the ring.
    pub(super) fn own(&self) {
        self.0.store(OWNED, Ordering::Relaxed);
    }

    /// Records that the owner will not use the ring any more.
    pub(super) fn end(&self) {
        // L1: pairs with the Acquire load in `has_ended`.
        self.0.store(ENDED, Ordering::Release);
    }

    /// Returns whether it has an owner, as far as known: the owner may change meanwhile.
    pub(super) fn is_owned(&self) -> bool {
        self.0.load(Ordering::Relaxed) == OWNED
    }

    /// Returns whether the owner has ended.
    pub(super) fn has_ended(&self) -> bool {
        // L1: pairs with the Release store in `end`.
        self.0.load(Ordering::Acquire) == ENDED
    }

    /// Makes the ring ready for another owner. The caller is the last owner, or the consumer after that owner has ended.
    pub(super) fn recycle(&self) {
        self.0.store(SPARE, Ordering::Relaxed);
    }
}
