//! The rate of sent bytes, over the last complete second or a longer time without packets.

use std::time::{Duration, Instant};

const WINDOW: Duration = Duration::from_secs(1);

/// Counts bytes over time.
#[derive(Debug, Default)]
pub(super) struct Rate {
    /// Start of the current window, and the bytes in it.
    began: Option<Instant>,
    bytes: u64,
    /// Bytes per second in the previous window.
    last: u64,
}

impl Rate {
    pub(super) fn add(&mut self, bytes: u64, now: Instant) {
        self.at(now);
        self.bytes += bytes;
    }

    /// Returns the rate in bytes per second.
    pub(super) fn at(&mut self, now: Instant) -> u64 {
        let elapsed = now.duration_since(*self.began.get_or_insert(now));
        if elapsed >= WINDOW {
            let rate = u128::from(self.bytes) * 1_000_000 / elapsed.as_micros();
            (self.began, self.bytes, self.last) = (Some(now), 0, u64::try_from(rate).unwrap_or(u64::MAX));
        }
        self.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_that_of_the_last_second_and_falls_to_nothing() {
        let (mut rate, began) = (Rate::default(), Instant::now());
        let after = |ms| began + Duration::from_millis(ms);
        for ms in (0..1000).step_by(100) {
            rate.add(500, after(ms));
        }
        assert_eq!(rate.at(after(999)), 0, "the first second is not over");
        assert_eq!(rate.at(after(1000)), 5000);
        rate.add(100, after(1500));
        assert_eq!(rate.at(after(5000)), 25, "100 bytes in four seconds");
        assert_eq!(rate.at(after(6000)), 0);
    }
}
