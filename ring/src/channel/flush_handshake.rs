//! Who may touch a buffer's open packet: its owner, or, while the owner is elsewhere, the flusher.
//!
//! An idle thread leaves a packet open for as long as it is idle. Somebody else has to close it, without a lock at the site, and
//! without a locked instruction in the common case. The owner's way in is `writing`, set from reserve to commit, and `limit`, up to
//! where it may write: 0 sends it to the slow path, where it meets the `state`.
//!
//! ```text
//!            ask (flusher): limit = 0             settle, owner not writing (flusher)
//!   OPEN ────────────────────────────────▶ ASKED ────────────────────────────────────▶ TAKEN
//!    ▲ ▲                                     │                                            │
//!    │ └──── may_switch (owner): it closes ──┘                                            │
//!    └──────────────────── the flusher has closed the packet ─────────────────────────────┘
//! ```
//!
//! In TAKEN, for the few stores that closing takes, the owner does not wait: [`may_switch`](FlushHandshake::may_switch) refuses, and the
//! event goes to the nested buffer, as if a signal handler had fired it. The flusher never has both buffers at a time, and it comes to
//! the nested one last: whoever is refused by both one after the other, and is no handler, finds the main one free again.
//!
//! Letters as in `docs/ordering.md`.
//!
//! * **F1/F2**: the owner sets `writing`, then a fence, then loads `limit`; the flusher stores `limit`, then a fence, then loads
//!   `writing`. One of the two sees what the other did: either the flusher finds the owner writing and leaves it to it, or the owner
//!   finds 0 and keeps its hands off the packet until it has looked at the state. The owner's fence is one for the compiler alone,
//!   the flusher's is `membarrier`'s. Where that is refused from the start, the flusher waits for a grace period instead: whoever
//!   fires after it has run the full fence with which sections begin there, and loads the 0.
//! * **F3**: `leave` stores `writing` with Release, `settle` loads it with Acquire: what the owner wrote is there to be closed.
//! * **F4**: the flusher stores OPEN with Release, `may_switch` loads with Acquire: the packet is closed when the owner goes on.
//!   The same pair the other way round when the owner takes ASKED back: the flusher does nothing then.
//! * **F5**: both the owner, which has opened a packet, and the flusher, which asks, *swap* the limit, Release and Acquire: one of the
//!   two reads what the other put there. If the owner reads the flusher's 0, it sees ASKED too, and puts the 0 back. If the flusher
//!   reads the owner's limit, its 0 stands.

use crate::primitive::{AtomicUsize, Ordering, owner_fence};

const OPEN: usize = 0;
const ASKED: usize = 1;
const TAKEN: usize = 2;

/// The owner's and the flusher's agreement over one buffer. Its place in that, and the order of its words, matter: see `buffer`.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct FlushHandshake {
    writing: AtomicUsize,
    limit: AtomicUsize,
    state: AtomicUsize,
}

impl FlushHandshake {
    /// No packet is open: the first reserve takes the slow path.
    pub(crate) fn new() -> Self {
        Self { writing: AtomicUsize::new(0), limit: AtomicUsize::new(0), state: AtomicUsize::new(OPEN) }
    }

    // -- the owner, and signal handlers on it ---------------------------------------------------------------------------

    /// Before a reserve; `false` if the caller is a signal handler that interrupts a write.
    #[inline(always)]
    pub(crate) fn enter(&self) -> bool {
        if self.writing.load(Ordering::Relaxed) != 0 {
            return false;
        }
        self.writing.store(1, Ordering::Relaxed);
        // F1, and for handlers on this thread: what follows stays after the store.
        owner_fence();
        true
    }

    /// The same outside any other event of the owner's: there is no write to interrupt.
    #[inline(always)]
    pub(crate) fn enter_outermost(&self) {
        debug_assert!(self.writing.load(Ordering::Relaxed) == 0, "writes are inside events");
        self.writing.store(1, Ordering::Relaxed);
        // F1, as above.
        owner_fence();
    }

    /// After the commit.
    #[inline(always)]
    pub(crate) fn leave(&self) {
        // F3.
        self.writing.store(0, Ordering::Release);
    }

    /// Up to where the open packet may be filled; 0: ask [`may_switch`](Self::may_switch) first.
    #[inline(always)]
    pub(crate) fn limit(&self) -> usize {
        self.limit.load(Ordering::Relaxed)
    }

    /// In the slow path, between `enter` and `leave`: what to do with the open packet.
    pub(crate) fn may_switch(&self) -> Switch {
        // F4.
        match self.state.load(Ordering::Acquire) {
            OPEN => Switch::Free,
            ASKED => match self.state.compare_exchange(ASKED, OPEN, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => Switch::Close,
                Err(OPEN) => Switch::Free,
                Err(_) => Switch::Busy,
            },
            _ => Switch::Busy,
        }
    }

    /// No packet is open.
    pub(crate) fn no_packet(&self) {
        self.limit.store(0, Ordering::Relaxed);
    }

    /// A packet is open now, and may be filled up to `limit`.
    pub(crate) fn set_limit(&self, limit: usize) {
        // F5.
        self.limit.swap(limit, Ordering::AcqRel);
        if self.state.load(Ordering::Relaxed) != OPEN {
            self.limit.store(0, Ordering::Relaxed);
        }
    }

    // -- the flusher: one at a time -------------------------------------------------------------------------------------

    /// Wants the open packet closed. To be followed by `thread::fence_owners` (F2), once for any number of gates, and then by `settle`.
    pub(crate) fn ask(&self) {
        // An earlier request may still stand.
        let _ = self.state.compare_exchange(OPEN, ASKED, Ordering::Relaxed, Ordering::Relaxed);
        // F5.
        self.limit.swap(0, Ordering::AcqRel);
    }

    /// Has `close` close the packet if the owner is elsewhere; leaves it to the owner if that has begun to. `false` if the owner is
    /// writing: ask again later, the request stands.
    pub(crate) fn settle(&self, close: impl FnOnce()) -> bool {
        if self.state.load(Ordering::Acquire) == OPEN {
            return true;
        }
        // F2 has gone before; F3.
        if self.writing.load(Ordering::Acquire) != 0 {
            return false;
        }
        if self.state.compare_exchange(ASKED, TAKEN, Ordering::AcqRel, Ordering::Acquire).is_ok() {
            close();
            // F4.
            self.state.store(OPEN, Ordering::Release);
        }
        true
    }

    /// Forgets what was asked. Nobody writes, and nobody will.
    #[cfg(not(loom))]
    pub(crate) fn reset(&self) {
        self.limit.store(0, Ordering::Relaxed);
        self.state.store(OPEN, Ordering::Relaxed);
        // The owner may have ended in the middle of a record.
        self.writing.store(0, Ordering::Relaxed);
    }

    /// Runs what a signal handler would that comes in the middle of a record.
    #[cfg(all(test, not(loom)))]
    pub(crate) fn interrupted(&self, handler: impl FnOnce()) {
        self.writing.store(1, Ordering::Relaxed);
        handler();
        self.writing.store(0, Ordering::Relaxed);
    }
}

/// What the owner may do with the open packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Switch {
    /// Go on: nobody wants anything of it.
    Free,
    /// Close it: somebody asked, and it is the owner's to do now.
    Close,
    /// Nothing: the flusher has it.
    Busy,
}
