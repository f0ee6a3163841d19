//! The overflow: spare rings in which a thread goes on whose own ring is full, while events come faster than the sinks take them.
//!
//! ```text
//!   thread ─▶ ring ─ ─ full ─ ─▶ next ring ─ ─ full ─ ─▶ …            each has streams of its own
//!              │
//!            ended: its packets wait for the consumer ──drained──▶ recycled, as the ring of a thread that has ended
//! ```
//!
//! Nothing is copied, and what waits is in rings. So everything that reads rings finds it: this process's consumer, one in another process, a
//! snapshot, and the recovery of a killed process.
//!
//! **States.** The thread takes a permit; takes a ring out of the pool (L2) and owns it; puts it into the table of the threads' rings; moves
//! the event's count of `fired` to it; and ends the full ring (L1). A kill between two of these steps leaves rings whose packets are as
//! committed, and at worst one event that is counted as fired in both rings: the full ring then counts one as killed. The full ring has no
//! owner from L1 on, and takes the way of the ring of an ended thread.
//!
//! **Nesting.** An event that another one interrupts, between its look at the table and its commit, may go on to write to the full ring. So
//! a signal handler that interrupts an event stays in that event's ring, and its event is lost if that is full. Events that probes fire may
//! go on in the next ring: the event around them is recorded by then (`ThreadSlot::may_change_ring`).
//!
//! **Order.** Readers merge streams by time, and the next ring's times are behind the last one of the full ring.
//!
//! **Limits.** The supplier gives out permits in each of its rounds: for the spare rings, but one, which a new thread finds; and for so many that
//! the ended rings whose packets wait stay within [`Channel::overflow`](super::Channel::overflow). A spare ring is drained, or its last owner has
//! handed it on while less than half of it waited. Rings are made within the bounds of the process's memory, as for new threads. Without a permit
//! an event is lost as `ring_full`, after one load more.

use std::sync::atomic::{AtomicBool, AtomicIsize, AtomicU64, Ordering};

/// The permits of a channel. Relaxed accesses: what a permit stands for is ordered by the pool (L2).
#[derive(Debug, Default)]
pub(super) struct Overflow {
    /// How many rings threads may go on in; below 0 if several threads took the last one at once.
    permits: AtomicIsize,
    /// How many rings threads have gone on in so far.
    rings: AtomicU64,
    /// Whether rings without an owner waited for the consumer in the supplier's last round.
    is_waiting: AtomicBool,
}

impl Overflow {
    /// Replaces the permits. `is_waiting`: whether rings without an owner wait for the consumer.
    pub(super) fn permit(&self, rings: usize, is_waiting: bool) {
        self.permits.store(isize::try_from(rings).unwrap_or(isize::MAX), Ordering::Relaxed);
        self.is_waiting.store(is_waiting, Ordering::Relaxed);
    }

    /// Whether there is a permit.
    pub(super) fn has_permits(&self) -> bool {
        self.permits.load(Ordering::Relaxed) > 0
    }

    /// Takes a permit, if there is one. The load keeps the cache line shared while there is none.
    pub(super) fn take_permit(&self) -> bool {
        self.has_permits() && self.permits.fetch_sub(1, Ordering::Relaxed) > 0
    }

    /// A thread has gone on in another ring.
    pub(super) fn count(&self) {
        self.rings.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether rings without an owner waited for the consumer in the supplier's last round.
    pub(super) fn is_waiting(&self) -> bool {
        self.is_waiting.load(Ordering::Relaxed)
    }

    /// How many rings threads have gone on in so far.
    pub(super) fn rings(&self) -> u64 {
        self.rings.load(Ordering::Relaxed)
    }
}
