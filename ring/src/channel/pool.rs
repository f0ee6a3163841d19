//! The spares: rings that are ready for threads to come.
//!
//! Taken by sites, put by the drain: a fixed row of places, each null or a ring. Taking swaps a place with null; no place is
//! looked at twice, so that it ends, and a ring cannot be taken twice, so that there is no ABA.

use super::ring::Ring;
use crate::primitive::{AtomicPtr, Ordering};
use std::ptr::null_mut;

#[derive(Debug)]
pub(super) struct Pool {
    places: Box<[AtomicPtr<Ring>]>,
}

impl Pool {
    pub(super) fn new(places: usize) -> Self {
        Self { places: (0..places).map(|_| AtomicPtr::new(null_mut())).collect() }
    }

    /// A spare ring, if there is one. Safe in signal handlers.
    pub(super) fn take(&self) -> Option<*const Ring> {
        self.places.iter().find_map(|place| {
            if place.load(Ordering::Relaxed).is_null() {
                return None;
            }
            // L2: Acquire pairs with the Release in `put`: the ring is ready before it is taken.
            let ring = place.swap(null_mut(), Ordering::Acquire);
            (!ring.is_null()).then_some(ring.cast_const())
        })
    }

    /// Puts a ring into a free place; `false` if there is none.
    pub(super) fn put(&self, ring: *const Ring) -> bool {
        self.places.iter().any(|place| {
            // L2: pairs with the Acquire in `take`.
            place.compare_exchange(null_mut(), ring.cast_mut(), Ordering::Release, Ordering::Relaxed).is_ok()
        })
    }

    /// How many places there are.
    pub(super) fn places(&self) -> usize {
        self.places.len()
    }

    /// Takes this ring out, if it is there.
    pub(super) fn remove(&self, ring: *const Ring) {
        for place in &self.places {
            // Relaxed: nobody looks at what is in it.
            let _ = place.compare_exchange(ring.cast_mut(), null_mut(), Ordering::Relaxed, Ordering::Relaxed);
        }
    }

    /// How many places are empty: how many rings are wanted.
    pub(super) fn empty_places(&self) -> usize {
        self.places.iter().filter(|place| place.load(Ordering::Relaxed).is_null()).count()
    }
}
