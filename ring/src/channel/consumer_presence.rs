//! The consumers of a channel, as its waiting events see them: whether one exists that can make room, and whether it makes progress.
//!
//! ```text
//!   making progress ──a wait timed out──▶ stalled ──a packet was released──▶ making progress
//! ```
//!
//! While the consumer is stalled, no event of the channel waits: a blocked sink or a stopped recorder costs each thread one wait, and threads that
//! start later none. A consumer in this process reports its progress. That of a consumer in another process is observed, by the next event of the
//! ring that timed out, and by each round of [`maintain`](super::OpenChannel::maintain).
//!
//! All of this is a hint, so Relaxed suffices: a wait that has missed the end of a consumer still times out.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

/// Values of `stalled`: not stalled, and stalled since the last observation. Others are the number of released packets at the first
/// observation, plus [`OBSERVED`].
const PROGRESS: u64 = 0;
const STALLED: u64 = 1;
const OBSERVED: u64 = 2;

/// The consumers of a channel.
#[derive(Debug, Default)]
pub(super) struct ConsumerPresence {
    /// Number of consumers in this process.
    registered: AtomicUsize,
    /// Number of these that wait for a grace period.
    waiting: AtomicUsize,
    /// Number of consumers in other processes.
    remote: AtomicUsize,
    /// True if the consumer in another process is known to have ended.
    remote_has_ended: AtomicBool,
    stalled: AtomicU64,
}

/// A registered consumer, which must drain the channel regularly until this is dropped.
#[derive(Debug)]
#[must_use = "dropping it ends the registration: events no longer wait for this consumer"]
pub struct ConsumerGuard {
    presence: Arc<ConsumerPresence>,
    is_remote: bool,
}

impl ConsumerPresence {
    pub(super) fn register(self: &Arc<Self>, is_remote: bool) -> ConsumerGuard {
        self.count(is_remote).fetch_add(1, Ordering::Relaxed);
        ConsumerGuard { presence: Arc::clone(self), is_remote }
    }

    const fn count(&self, is_remote: bool) -> &AtomicUsize {
        if is_remote { &self.remote } else { &self.registered }
    }

    /// Runs `wait`, which may wait for a grace period. Meanwhile, threads that wait for a consumer of this process inside a section give up.
    pub(super) fn while_waiting<R>(&self, wait: impl FnOnce() -> R) -> R {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let result = wait();
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        result
    }

    /// Records that the consumer in another process has ended: threads that wait for it give up.
    pub(super) fn end_remote(&self) {
        self.remote_has_ended.store(true, Ordering::Relaxed);
    }

    /// Returns whether a consumer in another process drains the channel, whatever this process does.
    pub(super) fn has_remote(&self) -> bool {
        self.remote.load(Ordering::Relaxed) > 0 && !self.remote_has_ended.load(Ordering::Relaxed)
    }

    /// Returns whether a consumer can drain now.
    pub(super) fn is_present(&self) -> bool {
        self.has_remote() || self.registered.load(Ordering::Relaxed) > self.waiting.load(Ordering::Relaxed)
    }

    /// Records that a wait timed out.
    pub(super) fn stall(&self) {
        self.stalled.store(STALLED, Ordering::Relaxed);
    }

    /// Returns whether a wait timed out, and no packet has been released since, as far as is known.
    pub(super) fn is_stalled(&self) -> bool {
        self.stalled.load(Ordering::Relaxed) != PROGRESS
    }

    /// Records that a packet has been released since the last wait that timed out.
    pub(super) fn progress(&self) {
        if self.is_stalled() {
            self.stalled.store(PROGRESS, Ordering::Relaxed);
        }
    }

    /// Finds out whether the consumer is still stalled. `released` returns the number of packets that have been released so far.
    pub(super) fn observe(&self, released: impl FnOnce() -> u64) {
        let stalled = self.stalled.load(Ordering::Relaxed);
        if stalled == PROGRESS {
            return;
        }
        let observed = OBSERVED.saturating_add(released());
        let next = if stalled == STALLED || stalled == observed { observed } else { PROGRESS };
        // Fails if a wait has timed out meanwhile, or the stall has ended.
        let _ = self.stalled.compare_exchange(stalled, next, Ordering::Relaxed, Ordering::Relaxed);
    }
}

impl Drop for ConsumerGuard {
    fn drop(&mut self) {
        self.presence.count(self.is_remote).fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_consumer_that_waits_for_a_grace_period_is_absent_unless_it_is_remote() {
        let consumers = Arc::new(ConsumerPresence::default());
        let local = consumers.register(false);
        assert!(consumers.is_present() && !consumers.while_waiting(|| consumers.is_present()));
        let remote = consumers.register(true);
        assert!(consumers.while_waiting(|| consumers.is_present()));
        drop(local);
        assert!(consumers.is_present());
        consumers.end_remote();
        assert!(!consumers.is_present());
        drop(remote);
    }

    #[test]
    fn a_stall_lasts_until_a_packet_is_released() {
        let consumers = ConsumerPresence::default();
        consumers.observe(|| unreachable!("nothing is counted while there is progress"));
        consumers.stall();
        for released in [7, 7, 8] {
            assert!(consumers.is_stalled());
            consumers.observe(|| released);
        }
        assert!(!consumers.is_stalled());
        consumers.stall();
        consumers.progress();
        assert!(!consumers.is_stalled());
    }
}
