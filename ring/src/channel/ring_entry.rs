//! The entry of one thread in the table of rings: its ring, and whether events should look for room in it.
//!
//! A thread whose ring is full loses many events in a row. None of them has to read the clock or examine the packet, as long as nothing has
//! changed since the last check. So the entry has three states. The fast path uses OPEN, found by one test; the counting of lost events uses FULL:
//!
//! ```text
//!            the first event                 an event finds no room
//!   EMPTY ──────────────────▶ OPEN ───────────────────────────────────▶ FULL
//!    (0)                 (address + 1) ◀─────────────────────────── (address + 2)
//!     ▲                    │          the consumer has released a packet, │
//!     │                    │          or another ring takes its place     │
//!     └────────────────────┴──────────────────────────────────────────────┘
//!             the thread ends, its process is a fork, or the memory is lost
//! ```
//!
//! FULL is a hint, and never decides that an event is lost: the [`FullMark`](super::buffer::FullMark) of the ring does, at each event.
//!
//! All accesses are Relaxed. The thread and its signal handlers write the entry. The supplier also clears it if the ring's memory was
//! lost; the ring's contents are not accessed for that.

use super::ring::Ring;
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicPtr, Ordering};

/// One of these is added to the address of a ring, which is aligned.
const OPEN: usize = 1;
const FULL: usize = 2;
const STATES: usize = OPEN | FULL;
const _: () = assert!(align_of::<Ring>() > STATES);

/// The entry of one thread. An empty one is zero.
#[derive(Debug)]
#[repr(transparent)]
pub(super) struct RingEntry(AtomicPtr<Ring>);

impl RingEntry {
    pub(super) const fn empty() -> Self {
        Self(AtomicPtr::new(null_mut()))
    }

    /// The ring, if there is one, and it is not full.
    #[inline(always)]
    pub(super) fn open(&self) -> Option<*const Ring> {
        let word = self.0.load(Ordering::Relaxed);
        (word.addr() & OPEN != 0).then(|| word.cast_const().wrapping_byte_sub(OPEN))
    }

    /// The ring, if there is one, and it is full.
    #[inline(always)]
    pub(super) fn full(&self) -> Option<*const Ring> {
        let word = self.0.load(Ordering::Relaxed);
        (word.addr() & FULL != 0).then(|| word.cast_const().wrapping_byte_sub(FULL))
    }

    /// The ring, open or full.
    pub(super) fn ring(&self) -> Option<NonNull<Ring>> {
        ring_of(self.0.load(Ordering::Relaxed))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.load(Ordering::Relaxed).is_null()
    }

    /// Puts an open ring into the entry if that is empty. Otherwise returns the ring found there.
    pub(super) fn put(&self, ring: &Ring) -> Option<NonNull<Ring>> {
        let put = self.0.compare_exchange(null_mut(), word_of(ring, OPEN), Ordering::Relaxed, Ordering::Relaxed);
        put.err().and_then(ring_of)
    }

    /// Replaces a ring, open or full, by another, open one. Returns `false` if the entry has another ring.
    pub(super) fn replace(&self, was: &Ring, is: &Ring) -> bool {
        self.change(was, word_of(is, OPEN))
    }

    /// Marks a ring as full, or as open. Does nothing if the entry has another ring.
    pub(super) fn set_full(&self, ring: &Ring, is_full: bool) {
        let word = word_of(ring, if is_full { FULL } else { OPEN });
        if self.0.load(Ordering::Relaxed) != word {
            self.change(ring, word);
        }
    }

    /// Removes this ring, open or full. Does nothing if the entry has another one.
    pub(super) fn remove(&self, ring: &Ring) {
        self.change(ring, null_mut());
    }

    /// Removes the ring and returns it.
    pub(super) fn take(&self) -> Option<NonNull<Ring>> {
        ring_of(self.0.swap(null_mut(), Ordering::Relaxed))
    }

    /// Empties the entry in a forked child, whatever its state.
    pub(super) fn clear(&self) {
        self.0.store(null_mut(), Ordering::Relaxed);
    }

    /// Writes to the entry's page without changing anything: the thread of this entry may have stored its ring.
    pub(super) fn touch(&self) {
        let _ = self.0.compare_exchange(null_mut(), null_mut(), Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Stores `word` in place of this ring, open or full.
    fn change(&self, ring: &Ring, word: *mut Ring) -> bool {
        let is_same = |found: *mut Ring| ring_of(found).is_some_and(|found| std::ptr::eq(found.as_ptr(), ring));
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |found| is_same(found).then_some(word)).is_ok()
    }
}

fn word_of(ring: &Ring, state: usize) -> *mut Ring {
    std::ptr::from_ref(ring).cast_mut().wrapping_byte_add(state)
}

fn ring_of(word: *mut Ring) -> Option<NonNull<Ring>> {
    NonNull::new(word.map_addr(|address| address & !STATES))
}
