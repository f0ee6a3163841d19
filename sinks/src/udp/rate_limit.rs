//! Limits the rate of sending by a token bucket of bytes.

use std::time::{Duration, Instant};

/// The bucket holds this fraction of the bytes of a second: a burst must fit into the client's socket buffer.
const BURSTS_PER_SECOND: u64 = 200;

/// A token bucket. Without a rate, sending is not limited.
#[derive(Clone, Debug)]
pub(super) struct RateLimit {
    rate: Option<u64>,
    /// May become negative by one datagram, so that rates below the size of a datagram work, too.
    tokens: i128,
    filled: Instant,
}

impl RateLimit {
    pub(super) fn new(rate: Option<u64>, now: Instant) -> Self {
        Self { rate: rate.map(|rate| rate.max(1)), tokens: 0, filled: now }
    }

    pub(super) const fn is_limited(&self) -> bool {
        self.rate.is_some()
    }

    /// Whether a message may be sent now.
    pub(super) fn may_send(&mut self, now: Instant) -> bool {
        let Some(rate) = self.rate else { return true };
        let passed = now.saturating_duration_since(self.filled);
        let earned = passed.as_nanos().saturating_mul(u128::from(rate)) / 1_000_000_000;
        if earned > 0 {
            let most = i128::from((rate / BURSTS_PER_SECOND).max(1));
            self.tokens = self.tokens.saturating_add_unsigned(earned).min(most);
            self.filled = now;
        }
        self.tokens > 0
    }

    /// Takes the bytes of a message that is sent.
    pub(super) fn spend(&mut self, bytes: usize) {
        if self.rate.is_some() {
            self.tokens -= bytes as i128;
        }
    }

    /// The time until the next message may be sent.
    pub(super) fn wait(&self) -> Duration {
        let Some(rate) = self.rate else { return Duration::ZERO };
        let missing = u64::try_from(1 - self.tokens).unwrap_or(0);
        Duration::from_nanos(missing.saturating_mul(1_000_000_000).div_ceil(rate).max(1_000_000))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_of_a_second_are_the_rate() {
        let begin = Instant::now();
        let mut rate_limit = RateLimit::new(Some(1_000_000), begin);
        assert!(!rate_limit.may_send(begin), "it begins empty");
        let mut sent = 0;
        for ms in 1..=10_000 {
            let now = begin + Duration::from_millis(ms);
            while rate_limit.may_send(now) {
                rate_limit.spend(1400);
                sent += 1400;
            }
        }
        assert!((9_990_000..10_002_000).contains(&sent), "{sent}");
    }

    #[test]
    fn a_rate_below_the_size_of_a_datagram_works() {
        let begin = Instant::now();
        let mut rate_limit = RateLimit::new(Some(100), begin);
        assert!(rate_limit.may_send(begin + Duration::from_secs(1)));
        rate_limit.spend(1400);
        assert_eq!(rate_limit.wait(), Duration::from_secs(14));
        assert!(!rate_limit.may_send(begin + Duration::from_secs(14)));
        assert!(rate_limit.may_send(begin + Duration::from_secs(15)));
    }

    #[test]
    fn idle_time_does_not_add_up_to_a_burst() {
        let begin = Instant::now();
        let mut rate_limit = RateLimit::new(Some(1 << 20), begin);
        assert!(rate_limit.may_send(begin + Duration::from_secs(3600)));
        rate_limit.spend((1 << 20) / BURSTS_PER_SECOND as usize);
        assert!(!rate_limit.may_send(begin + Duration::from_secs(3600)));
    }
}
