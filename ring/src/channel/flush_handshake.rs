//! The handshake for a buffer's open packet: the packet belongs to its owner or, while the owner is not writing, to the flusher.
//!
//! A thread keeps its packet open as long as it is idle, so another thread (the flusher) has to close the packet, without a lock at the
//! site and without a locked instruction in the common case. The owner sets `writing` from reserve to commit. `limit` is the end of the
//! bytes that it may write: a limit of 0 sends it to the slow path, where it checks the `state`.
//!
//! ```text
//!            request (flusher): limit = 0              try_close, owner not writing (flusher)
//!   IDLE ────────────────────────────────▶ REQUESTED ────────────────────────────────▶ FLUSHING
//!    ▲ ▲                                      │                                            │
//!    │ └── may_switch (owner): it closes ─────┘                                            │
//!    └──────────────────── the flusher has closed the packet ──────────────────────────────┘
//! ```
//!
//! In FLUSHING, for the few stores that close a packet, the owner does not wait: [`may_switch`](FlushHandshake::may_switch) refuses, and the
//! event goes to the nested buffer, like one of a signal handler. The flusher holds one buffer at a time, and the nested one last: an event
//! that both refuse in turn, and that is not a handler's, finds the main buffer free again.
//!
//! Letters as in `docs/ordering.md`.
//!
//! * **F1/F2**: the owner stores `writing`, then a fence, then loads `limit`; the flusher stores `limit`, then a fence, then loads
//!   `writing`. At least one of the two sees the other's store: either the flusher finds the owner writing and leaves the packet to it, or
//!   the owner finds 0 and does not touch the packet before it has checked the state. The owner's fence is for the compiler only; the
//!   flusher's is `membarrier`. If the kernel lacks it, the flusher waits for a grace period instead: a thread that fires
//!   after it has run the full fence of its section, and loads the 0.
//! * **F3**: `leave` stores `writing` with Release, `try_close` loads it with Acquire: the flusher sees all that the owner wrote.
//! * **F4**: the flusher stores IDLE with Release, `may_switch` loads with Acquire: the owner sees that the packet is closed. The same pair
//!   works in the other direction when the owner takes REQUESTED back: the flusher then does nothing.
//! * **F5**: the owner that has opened a packet, and the flusher that requests it, both *swap* the limit, with Release and Acquire, so that
//!   one of them reads the other's value. If the owner reads the flusher's 0, it also sees REQUESTED, and stores 0 again. If the flusher
//!   reads the owner's limit, its 0 remains.

use crate::primitive::{AtomicUsize, Ordering, owner_fence};

const IDLE: usize = 0;
const REQUESTED: usize = 1;
const FLUSHING: usize = 2;

/// The state of the handshake over one buffer. Its offset in [`Buffer`](super::buffer), and the order of its words, matter for speed.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct FlushHandshake {
    writing: AtomicUsize,
    limit: AtomicUsize,
    state: AtomicUsize,
}

impl FlushHandshake {
    /// Creates the state without an open packet: the first reserve takes the slow path.
    pub(crate) fn new() -> Self {
        Self { writing: AtomicUsize::new(0), limit: AtomicUsize::new(0), state: AtomicUsize::new(IDLE) }
    }

    // -- the owner, and signal handlers on its thread -------------------------------------------------------------------

    /// Returns whether the caller is a signal handler that has interrupted a write. An event that is not nested in another one need not check.
    #[inline(always)]
    pub(crate) fn is_writing(&self) -> bool {
        self.writing.load(Ordering::Relaxed) != 0
    }

    /// Must be called before a reserve, unless [`is_writing`](Self::is_writing).
    #[inline(always)]
    pub(crate) fn enter(&self) {
        debug_assert!(!self.is_writing(), "a write is not interrupted by another one");
        self.writing.store(1, Ordering::Relaxed);
        // F1, pairs with F2 in `OpenChannel::flush`. For handlers on this thread: later accesses stay after the store.
        owner_fence();
    }

    /// Must be called after the commit.
    #[inline(always)]
    pub(crate) fn leave(&self) {
        // F3: pairs with the Acquire load of `writing` in `try_close`.
        self.writing.store(0, Ordering::Release);
    }

    /// The end of the writable bytes of the open packet; 0 if [`may_switch`](Self::may_switch) must be called first.
    #[inline(always)]
    pub(crate) fn limit(&self) -> usize {
        self.limit.load(Ordering::Relaxed)
    }

    /// Determines what the owner may do with the open packet. Called in the slow path, between `enter` and `leave`.
    pub(crate) fn may_switch(&self) -> Switch {
        // F4: pairs with the Release store of IDLE in `try_close`.
        match self.state.load(Ordering::Acquire) {
            IDLE => Switch::Free,
            REQUESTED => match self.state.compare_exchange(REQUESTED, IDLE, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => Switch::Close,
                Err(IDLE) => Switch::Free,
                Err(_) => Switch::Busy,
            },
            _ => Switch::Busy,
        }
    }

    /// Records that no packet is open.
    pub(crate) fn clear_limit(&self) {
        self.limit.store(0, Ordering::Relaxed);
    }

    /// Records that a packet is open, and may be written up to `limit`.
    pub(crate) fn set_limit(&self, limit: usize) {
        // F5: pairs with the swap in `request`.
        self.limit.swap(limit, Ordering::AcqRel);
        if self.state.load(Ordering::Relaxed) != IDLE {
            self.limit.store(0, Ordering::Relaxed);
        }
    }

    // -- the flusher: one thread at a time ------------------------------------------------------------------------------

    /// Requests that the open packet be closed. `thread::fence_owners` (F2) must follow, once for any number of buffers, then `try_close`.
    pub(crate) fn request(&self) {
        // An earlier request may still be pending.
        let _ = self.state.compare_exchange(IDLE, REQUESTED, Ordering::Relaxed, Ordering::Relaxed);
        // F5: pairs with the swap in `set_limit`.
        self.limit.swap(0, Ordering::AcqRel);
    }

    /// Calls `close` if the owner is not writing and has not closed the packet itself. Returns `false` if the owner is writing: the request stays
    /// pending, and the owner closes the packet at its next reserve.
    pub(crate) fn try_close(&self, close: impl FnOnce()) -> bool {
        if self.state.load(Ordering::Acquire) == IDLE {
            return true;
        }
        // The fence F2 has been run. F3: pairs with the Release store in `leave`.
        if self.writing.load(Ordering::Acquire) != 0 {
            return false;
        }
        if self.state.compare_exchange(REQUESTED, FLUSHING, Ordering::AcqRel, Ordering::Acquire).is_ok() {
            close();
            // F4: pairs with the Acquire load in `may_switch`.
            self.state.store(IDLE, Ordering::Release);
        }
        true
    }

    /// Withdraws any request. The owner is not writing, and will not write.
    #[cfg(not(loom))]
    pub(crate) fn reset(&self) {
        self.limit.store(0, Ordering::Relaxed);
        self.state.store(IDLE, Ordering::Relaxed);
        // The owner may have ended in the middle of a record.
        self.writing.store(0, Ordering::Relaxed);
    }

    /// Runs `handler` like a signal handler that has interrupted a write.
    #[cfg(all(test, not(loom)))]
    pub(crate) fn interrupted(&self, handler: impl FnOnce()) {
        self.writing.store(1, Ordering::Relaxed);
        handler();
        self.writing.store(0, Ordering::Relaxed);
    }
}

/// The owner's permission for the open packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Switch {
    /// Use it: there is no request.
    Free,
    /// Close it: there was a request, which the owner has taken over.
    Close,
    /// Leave it alone: the flusher is closing it.
    Busy,
}
