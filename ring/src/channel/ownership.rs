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
//! the consumer's Acquire load of the state: from then on the consumer may access the owner's part of the ring. One of the two comes
//! after each owner, so that a ring is put into the pool either by its owner or by the consumer.

use crate::primitive::{AtomicU32, Ordering};

const SPARE: u32 = 0;
const OWNED: u32 = 1;
const ENDED: u32 = 2;

/// The state of a ring.
#[derive(Debug)]
#[repr(transparent)]
pub(super) struct Ownership(AtomicU32);

impl Ownership {
    /// Without an owner; zeroed memory is in this state too.
    #[cfg(loom)]
    pub(super) fn spare() -> Self {
        Self(AtomicU32::new(SPARE))
    }

    /// A thread has taken it.
    pub(super) fn own(&self) {
        self.0.store(OWNED, Ordering::Relaxed);
    }

    /// The owner will not use the ring any more.
    pub(super) fn end(&self) {
        // L1: pairs with the Acquire load in `has_ended`.
        self.0.store(ENDED, Ordering::Release);
    }

    /// Whether it has an owner, as far as is known: the owner may come or go meanwhile.
    pub(super) fn is_owned(&self) -> bool {
        self.0.load(Ordering::Relaxed) == OWNED
    }

    /// Whether the owner has ended.
    pub(super) fn has_ended(&self) -> bool {
        // L1: pairs with the Release store in `end`.
        self.0.load(Ordering::Acquire) == ENDED
    }

    /// The ring is ready for another owner: the caller is the last owner, or the consumer after that has ended.
    pub(super) fn recycle(&self) {
        self.0.store(SPARE, Ordering::Relaxed);
    }
}
