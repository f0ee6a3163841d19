//! RCU: read-side sections, and the grace periods after which a replaced list may be freed.
//!
//! A thread that fires a tracepoint is *inside a section* from before it loads the list of probes (or of subscribers) until the last of
//! them has returned. A thread that replaces a list publishes the new one with one store, and then waits for a *grace period*: until every
//! thread that might have seen the old list has left its section.
//!
//! # The counter
//!
//! Each thread owns one word, [`Section`]: its low eight bits are the nesting depth (probes fire tracepoints, signal handlers interrupt),
//! the bits above count completed outermost sections.
//!
//! ```text
//!              enter: +1                    enter: +1 (a probe fires, a handler interrupts)
//!   OUTSIDE ───────────────▶ INSIDE, depth 1 ───────────────▶ INSIDE, depth n
//!   (depth 0)                                ◀───────────────
//!      ▲      exit: depth 0, completed +1 │        exit: -1
//!      └────────────────────────────────┘
//! ```
//!
//! A waiter is done with a thread as soon as it sees depth 0, or another number of completed sections than at first: either means that the
//! section it waits for has ended. The second rule prevents a busy thread from starving the waiter.
//!
//! # Orderings
//!
//! Letters as in `docs/ordering.md`.
//!
//! * **G1/G2**: the reader stores the counter in `enter`, then a fence, then loads the list. The waiter stores the list, then a fence, then
//!   loads the counters. One of the two fences comes first: either the reader sees the new list, or the waiter sees the reader inside. The
//!   reader's fence is the light half of an asymmetric pair, the waiter's is the heavy half (`membarrier.rs`).
//! * **G3**: `exit` stores with Release, and the waiter loads with Acquire: what the probe did happens before the waiter frees what the
//!   probe used. The store in `enter` is a Release too: a waiter that finds the *next* section open concludes from that value that the one
//!   before has ended, and must synchronise with it.
//!
//! # Signal handlers
//!
//! The counter is updated by a plain load and store, not by a locked instruction: only the owner writes it, and a handler that runs in
//! between leaves the depth as it found it. The handler's completed section may be lost, because the interrupted thread stores the number
//! that it had loaded before. The waiter then waits for one section more, never for one less, because the number does not change while a
//! section is open.

#[cfg(not(loom))]
use crate::primitive::owner_fence;
use crate::primitive::{AtomicUsize, Ordering, heavy_fence, light_fence, pause};

/// The bits of the nesting depth. It never reaches 255: `thread::section` refuses much earlier.
const DEPTH_MASK: usize = 0xff;
/// One completed outermost section.
const ONE_COMPLETED: usize = DEPTH_MASK + 1;

/// One thread's word: the nesting depth of its read-side sections, and the number of completed outermost ones.
#[derive(Debug)]
pub(crate) struct Section {
    word: AtomicUsize,
}

impl Section {
    #[cfg(not(loom))]
    pub(crate) const fn new() -> Self {
        Self { word: AtomicUsize::new(0) }
    }

    /// A section that is always open. No thread waits for it.
    #[cfg(not(loom))]
    pub(crate) const fn always_open() -> Self {
        Self { word: AtomicUsize::new(1) }
    }

    #[cfg(loom)]
    pub(crate) fn new() -> Self {
        Self { word: AtomicUsize::new(0) }
    }

    /// Enters a section. Called only by the owning thread and its signal handlers.
    #[inline(always)]
    pub(crate) fn enter(&self) {
        let word = self.word.load(Ordering::Relaxed);
        debug_assert!(word & DEPTH_MASK < DEPTH_MASK, "read-side sections nested too deep");
        // G3: pairs with the loads of the waiter: one that sees this number sees what was done in the sections completed before.
        self.word.store(word + 1, Ordering::Release);
        // G1: pairs with the fence in `begin_grace_period`.
        light_fence();
    }

    /// Leaves a section. Called only by the owning thread and its signal handlers, once per `enter`.
    #[inline(always)]
    pub(crate) fn exit(&self) {
        let word = self.word.load(Ordering::Relaxed);
        debug_assert!(word & DEPTH_MASK > 0, "left a read-side section that was not entered");
        // Two stores instead of one of a selected value: each compiles to one `add` to memory.
        // G3: pairs with the loads of the waiter, in `open` and `has_ended`.
        if word & DEPTH_MASK == 1 {
            self.word.store(word.wrapping_add(ONE_COMPLETED - 1), Ordering::Release);
        } else {
            self.word.store(word - 1, Ordering::Release);
        }
    }

    /// Enters a section if the owning thread is outside any; returns whether it was. The fence G1 is for the compiler only: the caller has
    /// checked that the heavy half is `membarrier`.
    #[cfg(not(loom))]
    #[inline(always)]
    pub(crate) fn enter_outermost(&self) -> bool {
        let outside = self.word.load(Ordering::Relaxed);
        if outside & DEPTH_MASK != 0 {
            return false;
        }
        // G3, as in `enter`.
        self.word.store(outside + 1, Ordering::Release);
        // G1: pairs with G2, `membarrier` in `begin_grace_period`.
        owner_fence();
        true
    }

    /// Leaves the section that `enter_outermost` entered. Handlers that ran in between have left the depth as they found it.
    #[cfg(not(loom))]
    #[inline(always)]
    pub(crate) fn exit_outermost(&self) {
        let word = self.word.load(Ordering::Relaxed);
        // G3, as in `exit`.
        self.word.store(word.wrapping_add(ONE_COMPLETED - 1), Ordering::Release);
    }

    /// Leaves all open sections: the owning thread ends.
    #[cfg(not(loom))]
    pub(crate) fn end(&self) {
        let word = self.word.load(Ordering::Relaxed);
        // G3, as in `exit`.
        self.word.store((word & !DEPTH_MASK).wrapping_add(ONE_COMPLETED), Ordering::Release);
    }

    /// The nesting depth of the owning thread; stable only if called on that thread.
    #[inline(always)]
    pub(crate) fn depth(&self) -> usize {
        self.word.load(Ordering::Relaxed) & DEPTH_MASK
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
        (word & DEPTH_MASK != 0).then_some(OpenSection { completed: word & !DEPTH_MASK })
    }

    /// Whether the section that was seen open has ended.
    pub(crate) fn has_ended(&self, open: OpenSection) -> bool {
        // G3: as in `open`.
        let word = self.word.load(Ordering::Acquire);
        word & DEPTH_MASK == 0 || word & !DEPTH_MASK != open.completed
    }

    /// Clears the word: the thread does not exist in this process (after fork).
    pub(crate) fn reset(&self) {
        self.word.store(0, Ordering::Relaxed);
    }
}

/// A section that a waiter has seen open, identified by the number of sections completed before it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpenSection {
    completed: usize,
}

impl OpenSection {
    /// A word from which `from_word` restores it, never 0.
    pub(crate) const fn into_word(self) -> usize {
        self.completed | 1
    }

    /// The inverse of `into_word`; `None` for 0.
    pub(crate) fn from_word(word: usize) -> Option<Self> {
        (word != 0).then_some(Self { completed: word & !DEPTH_MASK })
    }
}

/// Begins a grace period: the waiter's half of G1/G2, after the new list was stored and before the first counter is loaded. `false` if the
/// kernel no longer provides the fence, so that it is not known which threads are inside a section.
#[must_use]
pub(crate) fn begin_grace_period() -> bool {
    // G2: pairs with the fence in `Section::enter`.
    heavy_fence()
}
