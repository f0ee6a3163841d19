//! Which senders wait while the disk is slower than they are. Without a clock.
//!
//! Packets that have come wait for the disk in memory, and viewers see none of them before it is written. Where the limit on memory alone decided, a slow
//! disk would delay viewers by the time that it takes to write all that memory, and each sender would fill a window more. So senders are told to wait
//! while the disk has work for [`HIGH`], and their rings keep to their policies. They go on one after the other, in the order in which they
//! began to wait, because each of them has a window of packets by then.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// The work of the disk, as the time that it takes, from which on senders wait.
const HIGH: Duration = Duration::from_millis(500);
/// The work at which they go on.
const LOW: Duration = Duration::from_millis(200);
/// The time between two senders that go on: about what it takes until the packets of the first one are here.
const APART: Duration = Duration::from_millis(50);

/// The state that all senders share.
#[derive(Debug, Default)]
pub(crate) struct Pacing {
    /// Sessions that wait.
    waiting: VecDeque<u64>,
    /// When the last one went on.
    resumed: Option<Instant>,
}

impl Pacing {
    /// Whether a session, which waits or does not, is to wait from now on. `work` is that of the disk.
    pub(crate) fn waits(&mut self, session: u64, is_waiting: bool, work: Duration, now: Instant) -> bool {
        if !is_waiting && work < HIGH {
            return false;
        }
        if !self.waiting.contains(&session) {
            self.waiting.push_back(session);
        }
        let is_soon = self.resumed.is_some_and(|at| now.saturating_duration_since(at) < APART);
        if work >= LOW || is_soon || self.waiting.front() != Some(&session) {
            return true;
        }
        self.waiting.pop_front();
        self.resumed = Some(now);
        false
    }

    /// The connection of a session has ended.
    pub(crate) fn leave(&mut self, session: u64) {
        self.waiting.retain(|waiting| *waiting != session);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn senders_wait_together_and_go_on_in_turn() {
        let (mut pacing, begin) = (Pacing::default(), Instant::now());
        let after = |millis| begin + Duration::from_millis(millis);
        let (much, little) = (HIGH, LOW.checked_sub(Duration::from_millis(1)).expect("more"));
        for millis in [0, 200, 499] {
            assert!(!pacing.waits(1, false, Duration::from_millis(millis), begin), "{millis} ms are usual");
        }
        assert!((1..=4).all(|session| pacing.waits(session, false, much, begin)));
        assert!((1..=4).all(|session| pacing.waits(session, true, LOW, after(1))), "it has not become much better");
        assert!(pacing.waits(2, true, little, after(2)), "it is the turn of the first");
        assert!(!pacing.waits(1, true, little, after(2)));
        assert!(pacing.waits(2, true, little, after(51)), "one after the other");
        assert!(!pacing.waits(2, true, little, after(52)));
        assert!(!pacing.waits(1, false, little, after(53)), "the first goes on");
        pacing.leave(3);
        assert!(!pacing.waits(4, true, little, after(200)));
        assert!(!pacing.waits(3, true, little, after(300)), "it has come back, and waits by its own account");
    }
}
