//! The overflow: spare rings in which a thread continues when its own ring is full, while events arrive faster than the sinks take them.
//!
//! ```text
//!   thread ─▶ ring ─ ─ full ─ ─▶ next ring ─ ─ full ─ ─▶ …            each has streams of its own
//!              │
//!            ended: its packets wait for the consumer ──drained──▶ recycled, as the ring of a thread that has ended
//! ```
//!
//! Nothing is copied, and waiting packets are in rings. So every reader of rings finds them: this process's consumer, one in another process, a
//! snapshot, and the recovery of a killed process.
//!
//! **States.** The thread takes a permit; takes a ring out of the pool (L2) and owns it; puts it into the table of the threads' rings; moves
//! the event's count of `fired` to it; and ends the full ring (L1). A kill between two of these steps leaves rings with their packets as
//! committed, and at worst one event that is counted as fired in both rings: the full ring then counts one as killed. The full ring has no
//! owner from L1 on, and is handled like the ring of an ended thread.
//!
//! **Nesting.** An event that another one interrupts, between its look at the table and its commit, may continue to write to the full ring. So
//! a signal handler that interrupts an event stays in that event's ring, and its event is lost if the ring is full. Events fired by probes may
//! continue in the next ring: the event around them has been recorded by then (`ThreadSlot::may_change_ring`).
//!
//! **Order.** Readers merge streams by time, and the next ring's times are later than the last one of the full ring.
//!
//! **Limits.** The supplier grants permits in each of its rounds: one for each spare ring except one, which is left for a new thread; and only so
//! many that the ended rings with waiting packets stay within [`Channel::overflow`](super::Channel::overflow). A spare ring has been drained, or its
//! last owner has handed it on with less than half of it waiting. Rings are created within the memory limits of the process, as for new threads.
//! Without a permit, an event is lost as `ring_full`, after one more load.

use std::sync::atomic::{AtomicBool, AtomicIsize, AtomicU64, Ordering};

/// The permits of a channel. Relaxed accesses: the pool (L2) orders the ring that a permit stands for.
#[derive(Debug, Default)]
pub(super) struct Overflow {
    /// Number of rings that threads may continue in; below 0 if several threads took the last one at the same time.
    permits: AtomicIsize,
    /// Number of rings that threads have continued in so far.
    rings: AtomicU64,
    /// True if rings without an owner waited for the consumer in the supplier's last round.
    is_waiting: AtomicBool,
}

impl Overflow {
    /// Replaces the permits. `is_waiting` tells that rings without an owner are waiting for the consumer.
    pub(super) fn permit(&self, rings: usize, is_waiting: bool) {
        self.permits.store(isize::try_from(rings).unwrap_or(isize::MAX), Ordering::Relaxed);
        self.is_waiting.store(is_waiting, Ordering::Relaxed);
    }

    /// Returns whether there is a permit.
    pub(super) fn has_permits(&self) -> bool {
        self.permits.load(Ordering::Relaxed) > 0
    }

    /// Takes a permit, if there is one. The load keeps the cache line shared while there is none.
    pub(super) fn take_permit(&self) -> bool {
        self.has_permits() && self.permits.fetch_sub(1, Ordering::Relaxed) > 0
    }

    /// Counts a thread that has continued in another ring.
    pub(super) fn count(&self) {
        self.rings.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns whether rings without an owner waited for the consumer in the supplier's last round.
    pub(super) fn is_waiting(&self) -> bool {
        self.is_waiting.load(Ordering::Relaxed)
    }

    /// Number of rings that threads have continued in so far.
    pub(super) fn rings(&self) -> u64 {
        self.rings.load(Ordering::Relaxed)
    }
}
