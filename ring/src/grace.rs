//! Read-side sections and grace periods: when may a probe list be freed?
//!
//! A thread that fires a tracepoint is *inside a section* from before it loads the list of probes (or of subscribers) until
//! after the last of them returned. Whoever replaces a list publishes the new one with one store and then waits for a
//! *grace period*: the moment when every thread that might have seen the old list has left its section.
//!
//! # The counter
//!
//! Each thread owns one word, [`Section`]: its low eight bits count how deep the thread is inside (probes fire tracepoints,
//! signal handlers interrupt), the bits above count finished outermost sections.
//!
//! ```text
//!              enter: +1                    enter: +1 (a probe fires, a handler interrupts)
//!   OUTSIDE ───────────────▶ INSIDE, depth 1 ───────────────▶ INSIDE, depth n
//!   (depth 0)                                ◀───────────────
//!      ▲      exit: depth 0, passes +1  │        exit: -1
//!      └────────────────────────────────┘
//! ```
//!
//! A waiter is done with a thread as soon as it sees depth 0, or a number of passes other than the one it first saw: both say
//! that the section it worried about has ended. The second rule keeps a busy thread from starving the waiter.
//!
//! # Orderings
//!
//! Letters as in `docs/ordering.md`.
//!
//! * **G1/G2**: `enter` stores the counter, then a fence, then the reader loads the list. The waiter stores the list, then a
//!   fence, then loads the counters. Of the two fences one comes first: either the reader sees the new list, or the waiter sees
//!   the reader inside. The reader's is the light half of an asymmetric pair, the waiter's the heavy one (`membarrier.rs`).
//! * **G3**: `exit` stores with Release; the waiter's load with Acquire takes from it. What the probe did happened before the
//!   waiter frees what the probe used. The store in `enter` is a Release too: a waiter that finds the *next* section open learns
//!   from that value that the one before has ended, and a relaxed store would carry nothing of it.
//!
//! # Signal handlers
//!
//! Counter updates are a plain load and store, not a locked instruction: only the owner writes, and a handler that comes in
//! between leaves the depth as it found it. It may lose one pass (the interrupted thread stores the number that it had loaded
//! before); the waiter then waits for one section longer, never shorter, because passes never move while a section is open.

#[cfg(not(loom))]
use crate::primitive::owner_fence;
use crate::primitive::{AtomicUsize, Ordering, heavy_fence, light_fence, pause};

/// The bits that count the depth. A thread is never 255 deep: `thread::section` stops long before.
const DEPTH_MASK: usize = 0xff;
/// One finished outermost section.
const ONE_PASS: usize = DEPTH_MASK + 1;

/// One thread's word: how deep it is inside read-side sections, and how many it has finished.
#[derive(Debug)]
pub(crate) struct Section {
    word: AtomicUsize,
}

impl Section {
    #[cfg(not(loom))]
    pub(crate) const fn new() -> Self {
        Self { word: AtomicUsize::new(0) }
    }

    /// One that nobody leaves, and nobody waits for.
    #[cfg(not(loom))]
    pub(crate) const fn always_open() -> Self {
        Self { word: AtomicUsize::new(1) }
    }

    #[cfg(loom)]
    pub(crate) fn new() -> Self {
        Self { word: AtomicUsize::new(0) }
    }

    /// Enters a section. Called by the owning thread (or a signal handler on it) only.
    #[inline(always)]
    pub(crate) fn enter(&self) {
        let word = self.word.load(Ordering::Relaxed);
        debug_assert!(word & DEPTH_MASK < DEPTH_MASK, "read-side sections nested too deep");
        // G3: whoever sees this number of passes sees what the passes before it did. Pairs with the loads of the waiter.
        self.word.store(word + 1, Ordering::Release);
        // G1: pairs with the fence in `begin_grace_period`.
        light_fence();
    }

    /// Leaves a section. Called by the owning thread only, once per `enter`.
    #[inline(always)]
    pub(crate) fn exit(&self) {
        let word = self.word.load(Ordering::Relaxed);
        debug_assert!(word & DEPTH_MASK > 0, "left a read-side section that was not entered");
        // Two stores instead of one of a chosen value: each is one instruction that adds to memory.
        // G3: pairs with the loads of the waiter, in `open` and `has_ended`.
        if word & DEPTH_MASK == 1 {
            self.word.store(word.wrapping_add(ONE_PASS - 1), Ordering::Release);
        } else {
            self.word.store(word - 1, Ordering::Release);
        }
    }

    /// Enters a section, if the owning thread is outside; whether it was. The light half of G1 is one for the compiler (the caller has
    /// made sure of that).
    #[cfg(not(loom))]
    #[inline(always)]
    pub(crate) fn enter_outermost(&self) -> bool {
        let outside = self.word.load(Ordering::Relaxed);
        if outside & DEPTH_MASK != 0 {
            return false;
        }
        // G3, as in `enter`.
        self.word.store(outside + 1, Ordering::Release);
        // G1.
        owner_fence();
        true
    }

    /// Leaves the section that `enter_outermost` has entered. Handlers that came in between have left the depth as they found it.
    #[cfg(not(loom))]
    #[inline(always)]
    pub(crate) fn exit_outermost(&self) {
        let word = self.word.load(Ordering::Relaxed);
        // G3, as in `exit`.
        self.word.store(word.wrapping_add(ONE_PASS - 1), Ordering::Release);
    }

    /// Leaves all that is open: the owning thread ends.
    #[cfg(not(loom))]
    pub(crate) fn end(&self) {
        let word = self.word.load(Ordering::Relaxed);
        // G3, as in `exit`.
        self.word.store((word & !DEPTH_MASK).wrapping_add(ONE_PASS), Ordering::Release);
    }

    /// How deep the owning thread is; only its own answer is stable.
    #[inline(always)]
    pub(crate) fn depth(&self) -> usize {
        self.word.load(Ordering::Relaxed) & DEPTH_MASK
    }

    /// Waits until the section that is open now, if one is, has ended. The caller has called [`begin_grace_period`].
    pub(crate) fn wait_until_ended(&self) {
        let Some(open) = self.open() else { return };
        let mut looks = 0;
        while !self.has_ended(open) {
            pause(looks);
            looks = looks.saturating_add(1);
        }
    }

    /// The section that is open now, if one is.
    pub(crate) fn open(&self) -> Option<OpenSection> {
        // G3: pairs with the Release stores in `enter` and `exit`.
        let word = self.word.load(Ordering::Acquire);
        (word & DEPTH_MASK != 0).then_some(OpenSection { passes: word & !DEPTH_MASK })
    }

    /// Whether the section that was seen open has ended.
    pub(crate) fn has_ended(&self, open: OpenSection) -> bool {
        // G3: as in `open`.
        let word = self.word.load(Ordering::Acquire);
        word & DEPTH_MASK == 0 || word & !DEPTH_MASK != open.passes
    }

    /// Forgets whatever was open: the thread does not exist in this process (after fork), or the slot gets a new owner.
    pub(crate) fn reset(&self) {
        self.word.store(0, Ordering::Relaxed);
    }
}

/// A section that a waiter has seen open: the one after so many passes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpenSection {
    passes: usize,
}

impl OpenSection {
    /// A word to keep it in, other than 0.
    pub(crate) const fn into_word(self) -> usize {
        self.passes | 1
    }

    /// What was kept; `None` for 0.
    pub(crate) fn from_word(word: usize) -> Option<Self> {
        (word != 0).then_some(Self { passes: word & !DEPTH_MASK })
    }
}

/// The waiter's half of G1/G2: after the new list was stored, before the first counter is loaded. `false` if there is no telling
/// who is inside: the kernel refuses the fence by now.
#[must_use]
pub(crate) fn begin_grace_period() -> bool {
    // G2: pairs with the fence in `Section::enter`.
    heavy_fence()
}
