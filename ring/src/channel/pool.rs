//! A pool of spare rings, prepared for threads.
//!
//! Threads take rings; the supplier adds them, and threads that end return theirs. The pool is a fixed array of entries, each null or a ring.
//! A take swaps an entry with null. It visits each entry once, so it is bounded; and a swap returns a ring to one thread only, so there is
//! no ABA problem. A take begins after the entry at which the previous one ended: successive threads use all rings in turn, so that
//! each ring has time to be drained.
//!
//! The number of rings is kept next to the entries: it is read in each round of the supplier, and at each event that finds no ring. It is
//! incremented before a ring is put and decremented after one is taken, so it is never below the number of entries with a ring. It is above
//! while a thread is between the two steps; an estimate that is too high for one round delays the creation of at most one ring by a round.

use super::ring::Ring;
use crate::primitive::{AtomicPtr, AtomicU32, Ordering};
use std::ptr::null_mut;
// Not the types of the models, which would explore each order of accesses to words that are mere hints.
use std::sync::atomic::{AtomicU32 as HintU32, AtomicUsize as HintUsize};

#[derive(Debug)]
pub(super) struct Pool {
    entries: Box<[AtomicPtr<Ring>]>,
    /// Relaxed, like the following ones: the entries order the contents of a ring (L2).
    count: AtomicU32,
    /// The lowest number since the last call of `lowest`.
    lowest: HintU32,
    /// The entry at which the next take begins.
    next: HintUsize,
    /// One past the last entry that ever had a ring: later entries are not visited.
    end: HintUsize,
}

impl Pool {
    pub(super) fn new(entries: usize) -> Self {
        Self {
            entries: (0..entries).map(|_| AtomicPtr::new(null_mut())).collect(),
            count: AtomicU32::new(0),
            lowest: HintU32::new(0),
            next: HintUsize::new(0),
            end: HintUsize::new(0),
        }
    }

    /// Takes a spare ring, if there is one. Safe in signal handlers.
    pub(super) fn take(&self) -> Option<*const Ring> {
        if self.count() == 0 {
            return None;
        }
        let end = self.end.load(Ordering::Relaxed);
        let from = self.next.load(Ordering::Relaxed).min(end);
        let (index, taken) = (from..end).chain(0..from).find_map(|index| {
            let entry = &self.entries[index];
            if entry.load(Ordering::Relaxed).is_null() {
                return None;
            }
            // L2: Acquire pairs with the Release in `put`: the ring is prepared, and its last owner gone, before it is taken.
            let ring = entry.swap(null_mut(), Ordering::Acquire);
            (!ring.is_null()).then_some((index, ring.cast_const()))
        })?;
        self.next.store(index + 1, Ordering::Relaxed);
        let before = self.count.fetch_sub(1, Ordering::Relaxed);
        self.lowest.fetch_min(before.saturating_sub(1), Ordering::Relaxed);
        Some(taken)
    }

    /// Puts a ring into an empty entry; returns `false` if there is none. Safe in signal handlers.
    pub(super) fn put(&self, ring: *const Ring) -> bool {
        self.count.fetch_add(1, Ordering::Relaxed);
        let is_put = self.entries.iter().enumerate().any(|(index, entry)| {
            if !entry.load(Ordering::Relaxed).is_null() {
                return false;
            }
            self.end.fetch_max(index + 1, Ordering::Relaxed);
            // L2: Release pairs with the Acquire in `take`.
            entry.compare_exchange(null_mut(), ring.cast_mut(), Ordering::Release, Ordering::Relaxed).is_ok()
        });
        if !is_put {
            self.count.fetch_sub(1, Ordering::Relaxed);
        }
        is_put
    }

    /// Adds a ring of the supplier: the lowest number becomes what it would have been with this ring.
    pub(super) fn add(&self, ring: *const Ring) -> bool {
        let is_put = self.put(ring);
        self.lowest.fetch_add(u32::from(is_put), Ordering::Relaxed);
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

    /// The lowest number of rings in the pool since the last call.
    pub(super) fn lowest(&self) -> usize {
        let now = self.count.load(Ordering::Relaxed);
        self.lowest.swap(now, Ordering::Relaxed).min(now) as usize
    }

    /// The number of rings in the pool; more while a ring is being put or taken.
    pub(super) fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed) as usize
    }
}
