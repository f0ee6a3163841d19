//! Deadlines of a control connection. Callers pass the time.

use crate::connection::{GREETING_TIME, MESSAGE_TIME};
use crate::stream_control::SILENCE;
use std::time::Instant;

/// Start times of the deadlines.
#[derive(Debug)]
pub(super) struct Deadlines {
    /// When the connection was accepted.
    began: Instant,
    /// When bytes last arrived.
    heard: Instant,
    /// When the first bytes of a still incomplete message arrived.
    incomplete: Option<Instant>,
}

impl Deadlines {
    pub(super) const fn new(began: Instant, now: Instant) -> Self {
        Self { began, heard: now, incomplete: None }
    }

    /// Records that bytes arrived.
    pub(super) const fn heard(&mut self, now: Instant) {
        self.heard = now;
    }

    /// Records that all complete messages were handled, and that `left` bytes of the next one remain. `is_any` is true if there was a complete one.
    pub(super) fn handled(&mut self, is_any: bool, left: usize, now: Instant) {
        if is_any || left == 0 {
            self.incomplete = None;
        }
        if left > 0 {
            self.incomplete.get_or_insert(now);
        }
    }

    /// Checks the deadlines. The error says which one has passed.
    pub(super) fn check(&self, has_session: bool, now: Instant) -> Result<(), &'static str> {
        let is_over = |since, time| now.saturating_duration_since(since) >= time;
        if !has_session && is_over(self.began, GREETING_TIME) {
            return Err("the sender had no session after 10 s");
        }
        if self.incomplete.is_some_and(|since| is_over(since, MESSAGE_TIME)) {
            return Err("a message of the sender was incomplete after 30 s");
        }
        if is_over(self.heard, SILENCE) {
            return Err("nothing came from the sender for 10 s");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// Returns after how many seconds (of 100) the connection of a sender ends that sends a byte per second, and completes a message when
    /// `is_message`.
    fn ends(has_session: bool, is_message: impl Fn(u64) -> bool) -> Option<u64> {
        let began = Instant::now();
        let mut deadlines = Deadlines::new(began, began);
        (1..100).find(|second| {
            let now = began + Duration::from_secs(*second);
            deadlines.heard(now);
            deadlines.handled(is_message(*second), 1, now);
            deadlines.check(has_session, now).is_err()
        })
    }

    #[test]
    fn bytes_do_not_prolong_a_message_nor_messages_the_time_without_a_session() {
        assert_eq!([ends(false, |_| true), ends(false, |_| false)], [Some(10); 2]);
        assert_eq!([ends(true, |_| true), ends(true, |second| second % 29 == 0)], [None; 2]);
        assert_eq!(ends(true, |_| false), Some(31));
        assert_eq!(ends(true, |second| second == 20), Some(50));
    }

    #[test]
    fn a_sender_that_says_nothing_is_gone() {
        let began = Instant::now();
        let mut deadlines = Deadlines::new(began, began);
        let after = |seconds| began + Duration::from_secs(seconds);
        assert_eq!(deadlines.check(true, after(9)), Ok(()));
        assert_eq!(deadlines.check(true, after(10)), Err("nothing came from the sender for 10 s"));
        deadlines.heard(after(10));
        deadlines.handled(true, 0, after(10));
        assert_eq!((deadlines.check(true, after(19)), deadlines.incomplete), (Ok(()), None));
    }
}
