//! Which events have none before them that are still to come.
//!
//! A ring hands its packets on when they are full, or when they have been open for half a second, which is looked at every tenth of one.
//! So what was in the rings when a look ended has come when one ends that began long enough after it: events up to the newest that were seen
//! by then are in order. No clock of the trace is compared with one of ours.
//!
//! Of another process's rings it is that process which closes the packets, and it may be late: there the time is longer, and one that is stopped
//! meanwhile, or that is in the middle of an event when its packet is to be closed, has events that come late.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// For how long a packet may be kept in its ring: of this process, and of another one.
pub(super) const KEPT: Duration = Duration::from_millis(800);
pub(super) const KEPT_OUTSIDE: Duration = Duration::from_secs(2);
/// The pause between two marks.
const PAUSE: Duration = Duration::from_millis(50);

#[derive(Debug)]
pub(super) struct Settled {
    kept: Duration,
    /// When a look ended, and the newest event by then.
    marks: VecDeque<(Instant, i64)>,
    newest: i64,
    /// When the last look ended, and the next began.
    looked: Option<Instant>,
    until: i64,
}

impl Settled {
    /// Where packets are kept for so long.
    pub(super) const fn new(kept: Duration) -> Self {
        Self { kept, marks: VecDeque::new(), newest: i64::MIN, looked: None, until: i64::MIN }
    }

    /// An event of this time has come.
    pub(super) fn saw(&mut self, time: i64) {
        self.newest = self.newest.max(time);
    }

    /// A look has ended; up to which time nothing is missing.
    pub(super) fn look_ended(&mut self, now: Instant) -> i64 {
        let began = self.looked.replace(now).unwrap_or(now);
        let old = self.marks.iter().take_while(|(marked, _)| began.duration_since(*marked) >= self.kept).count();
        if let Some((_, newest)) = self.marks.drain(..old).next_back() {
            self.until = newest;
        }
        if self.marks.back().is_none_or(|(marked, _)| now.duration_since(*marked) >= PAUSE) {
            self.marks.push_back((now, self.newest));
        }
        self.until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_seen_is_in_order_when_a_look_began_late_enough() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut settled = Settled::new(KEPT);
        settled.saw(5);
        assert_eq!(settled.look_ended(at(0)), i64::MIN);
        settled.saw(9);
        settled.saw(7);
        assert_eq!(settled.look_ended(at(750)), i64::MIN);
        // It ended late enough, and began too early.
        assert_eq!(settled.look_ended(at(2000)), i64::MIN);
        assert_eq!(settled.look_ended(at(2001)), 9);
        // Where nothing comes that is so all the same.
        settled.saw(11);
        for ms in (2100..3000).step_by(100) {
            assert_eq!(settled.look_ended(at(ms)), 9, "{ms}");
        }
        assert_eq!(settled.look_ended(at(3000)), 11);
    }

    #[test]
    fn marks_are_few() {
        let start = Instant::now();
        let mut settled = Settled::new(KEPT);
        for ms in 0..10_000 {
            settled.look_ended(start + Duration::from_millis(ms));
            assert!(settled.marks.len() < 20);
        }
    }
}
