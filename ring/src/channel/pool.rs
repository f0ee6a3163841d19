//! The pool of spare rings, prepared for new threads.
//!
//! Sites take rings, the consumer puts them. The pool is a fixed array of entries, each null or a ring. A take swaps an entry with null. It
//! visits each entry once, so it is bounded, and a swap returns a ring to one thread only, so there is no ABA problem.
//!
//! The number of rings is kept beside the entries: it is asked for in each round of the supplier, and at each event that finds no ring. It is
//! raised before a ring is put and lowered after one is taken, so that it is never below the number of entries with a ring. It is above it
//! while a thread is between the two; an estimate that is too high for one round costs at most one ring that is made a round later.

use super::ring::Ring;
use crate::primitive::{AtomicPtr, AtomicU32, Ordering};
use std::ptr::null_mut;

#[derive(Debug)]
pub(super) struct Pool {
    entries: Box<[AtomicPtr<Ring>]>,
    /// Relaxed: the entries order what belongs to a ring (L2).
    count: AtomicU32,
}

impl Pool {
    pub(super) fn new(entries: usize) -> Self {
        Self { entries: (0..entries).map(|_| AtomicPtr::new(null_mut())).collect(), count: AtomicU32::new(0) }
    }

    /// A spare ring, if there is one. Safe in signal handlers.
    pub(super) fn take(&self) -> Option<*const Ring> {
        if self.count() == 0 {
            return None;
        }
        let taken = self.entries.iter().find_map(|entry| {
            if entry.load(Ordering::Relaxed).is_null() {
                return None;
            }
            // L2: Acquire pairs with the Release in `put`: the ring is prepared before it is taken.
            let ring = entry.swap(null_mut(), Ordering::Acquire);
            (!ring.is_null()).then_some(ring.cast_const())
        })?;
        self.count.fetch_sub(1, Ordering::Relaxed);
        Some(taken)
    }

    /// Puts a ring into an empty entry; `false` if there is none.
    pub(super) fn put(&self, ring: *const Ring) -> bool {
        self.count.fetch_add(1, Ordering::Relaxed);
        let is_put = self.entries.iter().any(|entry| {
            // L2: Release pairs with the Acquire in `take`.
            entry.compare_exchange(null_mut(), ring.cast_mut(), Ordering::Release, Ordering::Relaxed).is_ok()
        });
        if !is_put {
            self.count.fetch_sub(1, Ordering::Relaxed);
        }
        is_put
    }

    /// The number of entries.
    pub(super) fn capacity(&self) -> usize {
        self.entries.len()
    }

    /// Removes this ring, if it is in the pool.
    pub(super) fn remove(&self, ring: *const Ring) {
        for entry in &self.entries {
            // Relaxed: the ring's contents are not accessed.
            if entry.compare_exchange(ring.cast_mut(), null_mut(), Ordering::Relaxed, Ordering::Relaxed).is_ok() {
                self.count.fetch_sub(1, Ordering::Relaxed);
            }
        }
    }

    /// The number of rings in the pool; more while a ring is being put or taken.
    pub(super) fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed) as usize
    }
}
