//! The pool of spare rings, prepared for new threads.
//!
//! Sites take rings, the consumer puts them. The pool is a fixed array of entries, each null or a ring. A take swaps an entry with null. It
//! visits each entry once, so it is bounded, and a swap returns a ring to one thread only, so there is no ABA problem.

use super::ring::Ring;
use crate::primitive::{AtomicPtr, Ordering};
use std::ptr::null_mut;

#[derive(Debug)]
pub(super) struct Pool {
    entries: Box<[AtomicPtr<Ring>]>,
}

impl Pool {
    pub(super) fn new(entries: usize) -> Self {
        Self { entries: (0..entries).map(|_| AtomicPtr::new(null_mut())).collect() }
    }

    /// A spare ring, if there is one. Safe in signal handlers.
    pub(super) fn take(&self) -> Option<*const Ring> {
        self.entries.iter().find_map(|entry| {
            if entry.load(Ordering::Relaxed).is_null() {
                return None;
            }
            // L2: Acquire pairs with the Release in `put`: the ring is prepared before it is taken.
            let ring = entry.swap(null_mut(), Ordering::Acquire);
            (!ring.is_null()).then_some(ring.cast_const())
        })
    }

    /// Puts a ring into an empty entry; `false` if there is none.
    pub(super) fn put(&self, ring: *const Ring) -> bool {
        self.entries.iter().any(|entry| {
            // L2: Release pairs with the Acquire in `take`.
            entry.compare_exchange(null_mut(), ring.cast_mut(), Ordering::Release, Ordering::Relaxed).is_ok()
        })
    }

    /// The number of entries.
    pub(super) fn capacity(&self) -> usize {
        self.entries.len()
    }

    /// Removes this ring, if it is in the pool.
    pub(super) fn remove(&self, ring: *const Ring) {
        for entry in &self.entries {
            // Relaxed: the ring's contents are not accessed.
            let _ = entry.compare_exchange(ring.cast_mut(), null_mut(), Ordering::Relaxed, Ordering::Relaxed);
        }
    }

    /// The number of rings in the pool.
    pub(super) fn count(&self) -> usize {
        self.entries.iter().filter(|entry| !entry.load(Ordering::Relaxed).is_null()).count()
    }
}
