//! The sleep state of a channel's consumer: a word that the consumer and the owners of the rings share, possibly across processes.
//!
//! ```text
//!   AWAKE ──announce (consumer)──▶ ASLEEP ──must_wake (one owner), or awake (consumer)──▶ AWAKE
//! ```
//!
//! The consumer announces its sleep, *then* checks the rings, and sleeps only if they are less than half full. An owner counts a closed
//! packet, *then* checks the word. This is Dekker's pattern: each side stores its own word before it loads the other's, with a full fence
//! in between (W1, W2 in `docs/ordering.md`), so at least one of the two sees the other's store. Either the consumer finds the packet, or
//! the owner finds the consumer asleep. The futex closes the remaining gap: the kernel compares the word again before the consumer
//! sleeps, and an owner changes it before it calls the kernel.

use crate::primitive::{AtomicU32, Ordering, fence};

const AWAKE: u32 = 0;
/// The value with which the consumer waits in the kernel.
pub(super) const ASLEEP: u32 = 1;

/// The word.
#[derive(Debug)]
#[repr(transparent)]
pub(super) struct SleepState(AtomicU32);

impl SleepState {
    pub(super) fn new() -> Self {
        Self(AtomicU32::new(AWAKE))
    }

    /// Announces that the consumer is about to sleep. The consumer must then check the rings, and may decide not to sleep.
    pub(super) fn announce(&self) {
        self.0.store(ASLEEP, Ordering::Relaxed);
        // W1: pairs with W2 in `must_wake`.
        fence(Ordering::SeqCst);
    }

    /// Records that the consumer does not sleep after all.
    pub(super) fn awake(&self) {
        self.0.store(AWAKE, Ordering::Relaxed);
    }

    /// Returns whether no thread has woken the consumer since it announced its sleep. Relaxed: the consumer then loads the packets by their own
    /// orders (R2).
    #[cfg(not(any(linux_kernel, loom)))]
    pub(super) fn is_asleep(&self) -> bool {
        self.0.load(Ordering::Relaxed) == ASLEEP
    }

    /// Returns whether the caller, who has counted a closed packet before, must wake the consumer. `true` for one caller after each announcement.
    pub(super) fn must_wake(&self) -> bool {
        // W2: pairs with W1 in `announce`.
        fence(Ordering::SeqCst);
        // The load keeps the cache line shared while the consumer is awake.
        self.0.load(Ordering::Relaxed) == ASLEEP && self.0.swap(AWAKE, Ordering::Relaxed) == ASLEEP
    }
}
