//! Decides which senders pause while the disk is slower than they are. Callers pass the time.
//!
//! Packets wait in memory for the disk, and viewers see them only once they are written. If only the memory limit stopped senders, a slow disk would
//! delay viewers by the time it takes to write all that memory, and each sender would fill another window. So the collector asks senders to pause
//! while the disk has work for [`HIGH`]; their rings then apply their full-ring policy. Senders resume one by one in the order in which they paused,
//! because each has a window of packets to send by then.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Queued disk work, measured as the time it takes, at which senders pause.
const HIGH: Duration = Duration::from_millis(500);
/// Queued disk work below which senders resume.
const LOW: Duration = Duration::from_millis(200);
/// Minimum time between two senders that resume: about as long as the first one's packets take to arrive.
const APART: Duration = Duration::from_millis(50);

/// The pacing state of all senders.
#[derive(Debug, Default)]
pub(crate) struct Pacer {
    /// Sessions that are paused, in order.
    waiting: VecDeque<u64>,
    /// When a session resumed last.
    resumed: Option<Instant>,
}

impl Pacer {
    /// Returns whether a session is to pause. `is_waiting` is true if it is paused already; `work` is the queued work of the disk.
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

    /// Forgets a session whose connection has ended.
    pub(crate) fn leave(&mut self, session: u64) {
        self.waiting.retain(|waiting| *waiting != session);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn senders_wait_together_and_go_on_in_turn() {
        let (mut pacing, begin) = (Pacer::default(), Instant::now());
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
