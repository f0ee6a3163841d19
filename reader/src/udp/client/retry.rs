//! Saying a thing again and again, until somebody answers.

use std::time::Duration;

#[derive(Clone, Copy, Debug)]
pub(super) struct Retry {
    since: Duration,
    next: Duration,
    every: Duration,
    said: u32,
}

impl Retry {
    /// The first time is now.
    pub(super) fn new(now: Duration, every: Duration) -> Self {
        Self { since: now, next: now, every, said: 0 }
    }

    /// Whether it is time; `true` says that it is done.
    pub(super) fn due(&mut self, now: Duration) -> bool {
        if now < self.next {
            return false;
        }
        self.next = now + self.every;
        self.said += 1;
        true
    }

    /// How often it was said.
    pub(super) fn said(&self) -> u32 {
        self.said
    }

    /// From here on it is said every so often.
    pub(super) fn slow_down(&mut self, every: Duration) {
        self.every = every;
    }

    pub(super) fn next(&self) -> Duration {
        self.next
    }

    /// Since when.
    pub(super) fn since(&self) -> Duration {
        self.since
    }
}
