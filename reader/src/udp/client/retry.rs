//! Repeats a message until it is answered.

use std::time::Duration;

#[derive(Clone, Copy, Debug)]
pub(super) struct Retry {
    since: Duration,
    next: Duration,
    every: Duration,
    sent: u32,
}

impl Retry {
    /// A message that is first sent now.
    pub(super) fn new(now: Duration, every: Duration) -> Self {
        Self { since: now, next: now, every, sent: 0 }
    }

    /// True if the message is due now; the caller must then send it.
    pub(super) fn due(&mut self, now: Duration) -> bool {
        if now < self.next {
            return false;
        }
        self.next = now + self.every;
        self.sent += 1;
        true
    }

    /// How often it was sent.
    pub(super) fn sent(&self) -> u32 {
        self.sent
    }

    /// Changes the interval.
    pub(super) fn slow_down(&mut self, every: Duration) {
        self.every = every;
    }

    pub(super) fn next(&self) -> Duration {
        self.next
    }

    /// When it was first sent.
    pub(super) fn since(&self) -> Duration {
        self.since
    }
}
