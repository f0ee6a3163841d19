//! RCU: read-side sections, and the grace periods after which a replaced list may be freed.
//!
//! A thread that fires a tracepoint is *inside a section* from before it loads the list of probes (or of subscribers) until the last of
//! them has returned. A thread that replaces a list publishes the new one with one store, and then waits for a *grace period*: until every
//! thread that might have seen the old list has left its section.
//!
//! # The counter
//!
//! Each thread owns one word, [`Section`], which counts the changes between outside and inside: it is odd inside a section.
//!
//! ```text
//!              enter: +1
//!   OUTSIDE ───────────────▶ INSIDE
//!    (even)                   (odd)
//!      ▲      exit: +1          │
//!      └────────────────────────┘
//! ```
//!
//! An event inside another one (a probe fires, a signal handler interrupts) is covered by the section that is already open: `enter` returns
//! `false`, and the event does not leave the section.
//!
//! A waiter is done with a thread as soon as it sees an even number, or a number that differs from the first one: either means that the section it
//! waits for has ended. The second rule prevents a busy thread from starving the waiter.
//!
//! # Orderings
//!
//! Letters as in `docs/ordering.md`.
//!
//! * **G1/G2**: the reader stores the counter in `enter`, then a fence, then loads the list. The waiter stores the list, then a fence, then
//!   loads the counters. One of the two fences comes first: either the reader sees the new list, or the waiter sees the reader inside. The
//!   reader's fence is the light half of an asymmetric pair, the waiter's is the heavy half (`membarrier.rs`).
//! * **G3**: `exit` stores with Release, and the waiter loads with Acquire: everything that the probe did happens before the waiter frees the data
//!   that the probe used. The store in `enter` is a Release as well: a waiter that finds the *next* section open concludes from that value that the
//!   previous one has ended, and must synchronise with it.
//!
//! # Signal handlers
//!
//! The counter is updated by a plain load and store, not by a locked instruction: only the owner writes it, and a handler that runs in
//! between leaves it even if it was even. The handler's section may be lost from the count, because the interrupted thread stores the number
//! that follows the one it had loaded before. The waiter then waits for one section more, never for one less, because the number does not
//! change while a section is open.

use crate::primitive::{AtomicUsize, Ordering, heavy_fence, pause};

/// Set inside a section.
const OPEN: usize = 1;

/// A thread's word: the number of times it has entered or left a section.
#[derive(Debug)]
pub(crate) struct Section {
    word: AtomicUsize,
}

impl Section {
    #[cfg(not(loom))]
    pub(crate) const fn new() -> Self {
        Self { word: AtomicUsize::new(0) }
    }

    /// A section that is always open. It is never waited for.
    #[cfg(not(loom))]
    pub(crate) const fn always_open() -> Self {
        Self { word: AtomicUsize::new(OPEN) }
    }

    #[cfg(loom)]
    pub(crate) fn new() -> Self {
        Self { word: AtomicUsize::new(0) }
    }

    /// Enters a section if the owning thread is outside of any, and returns whether it was. `fence` is G1: [`light_fence`](crate::primitive), or
    /// a compiler fence, if the caller knows that the heavy half is `membarrier`. Called only by the owning thread and its
    /// signal handlers.
    #[inline(always)]
    pub(crate) fn enter(&self, fence: impl FnOnce()) -> bool {
        let outside = self.word.load(Ordering::Relaxed);
        if outside & OPEN != 0 {
            // A signal handler may have interrupted the `enter` of that section before its fence.
            fence();
            return false;
        }
        // G3: pairs with the loads of the waiter: a waiter that sees this number sees everything done in the sections completed before.
        self.word.store(outside + 1, Ordering::Release);
        // G1: pairs with the fence in `begin_grace_period`.
        fence();
        true
    }

    /// Leaves the section. Called only by the owning thread and its signal handlers, once for each `enter` that returned `true`.
    #[inline(always)]
    pub(crate) fn exit(&self) {
        let inside = self.word.load(Ordering::Relaxed);
        debug_assert!(inside & OPEN != 0, "left a read-side section that was not entered");
        // G3: pairs with the loads of the waiter, in `open` and `has_ended`.
        self.word.store(inside.wrapping_add(1), Ordering::Release);
    }

    /// Returns whether the owning thread is inside a section. Stable only if called on that thread.
    #[inline(always)]
    pub(crate) fn is_open(&self) -> bool {
        self.word.load(Ordering::Relaxed) & OPEN != 0
    }

    /// Waits until the section that is open now, if any, has ended. The caller has called [`begin_grace_period`].
    pub(crate) fn wait_until_ended(&self) {
        let Some(open) = self.open() else { return };
        let mut checks = 0;
        while !self.has_ended(open) {
            pause(checks);
            checks = checks.saturating_add(1);
        }
    }

    /// The section that is open now, if any.
    pub(crate) fn open(&self) -> Option<OpenSection> {
        // G3: pairs with the Release stores in `enter` and `exit`.
        let word = self.word.load(Ordering::Acquire);
        (word & OPEN != 0).then_some(OpenSection { word })
    }

    /// Returns whether the section that was seen open has ended.
    pub(crate) fn has_ended(&self, open: OpenSection) -> bool {
        // G3: as in `open`.
        self.word.load(Ordering::Acquire) != open.word
    }

    /// Clears the word: the thread does not exist in this process (after fork).
    pub(crate) fn reset(&self) {
        self.word.store(0, Ordering::Relaxed);
    }
}

/// A section that a waiter has seen open, identified by its number, which is odd.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpenSection {
    word: usize,
}

impl OpenSection {
    /// A word from which `from_word` restores the section. It is never 0.
    pub(crate) const fn into_word(self) -> usize {
        self.word
    }

    /// The inverse of `into_word`; `None` for 0.
    pub(crate) fn from_word(word: usize) -> Option<Self> {
        (word != 0).then_some(Self { word })
    }
}

/// Begins a grace period: the waiter's half of G1/G2, after the new list was stored and before the first counter is loaded. Returns `false` if the
/// kernel no longer provides the fence, so that it is unknown which threads are inside a section.
#[must_use]
pub(crate) fn begin_grace_period() -> bool {
    // G2: pairs with the fence in `Section::enter`.
    heavy_fence()
}
