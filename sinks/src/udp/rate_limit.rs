//! Limits the rate of sending with token buckets: one for bytes, one for datagrams.
//!
//! A socket buffer is charged more for a datagram than its bytes, so many small datagrams fill a client's buffer soonest.

use std::time::{Duration, Instant};

/// A bucket holds this fraction of a second's tokens: a burst must fit into the client's socket buffer.
const BURSTS_PER_SECOND: u64 = 200;
/// Minimum wait, because system timers are not much more precise.
const MIN_WAIT: Duration = Duration::from_millis(1);

/// The limits of a session.
#[derive(Clone, Debug)]
pub(super) struct RateLimit {
    bytes: Bucket,
    datagrams: Bucket,
}

impl RateLimit {
    /// Limits the bytes and the datagrams per second, each if it has a rate.
    pub(super) fn new(bytes: Option<u64>, datagrams: Option<u32>, now: Instant) -> Self {
        Self { bytes: Bucket::new(bytes, now), datagrams: Bucket::new(datagrams.map(u64::from), now) }
    }

    pub(super) const fn is_limited(&self) -> bool {
        self.bytes.rate.is_some() || self.datagrams.rate.is_some()
    }

    /// Returns whether a datagram may be sent now.
    pub(super) fn may_send(&mut self, now: Instant) -> bool {
        self.bytes.fill(now);
        self.datagrams.fill(now);
        self.wait().is_zero()
    }

    /// Charges a datagram of this many bytes, which is sent.
    pub(super) fn spend(&mut self, bytes: usize) {
        self.bytes.spend(bytes);
        self.datagrams.spend(1);
    }

    /// Returns the time until the next datagram may be sent.
    pub(super) fn wait(&self) -> Duration {
        let wait = self.bytes.wait().max(self.datagrams.wait());
        if wait.is_zero() { wait } else { wait.max(MIN_WAIT) }
    }
}

/// A token bucket. Without a rate, nothing is limited.
#[derive(Clone, Debug)]
struct Bucket {
    rate: Option<u64>,
    /// May become negative by one datagram, so that rates below the size of a datagram also work.
    tokens: i128,
    filled: Instant,
}

impl Bucket {
    fn new(rate: Option<u64>, now: Instant) -> Self {
        Self { rate: rate.map(|rate| rate.max(1)), tokens: 0, filled: now }
    }

    /// Adds the tokens earned since the last call.
    fn fill(&mut self, now: Instant) {
        let Some(rate) = self.rate else { return };
        let passed = now.saturating_duration_since(self.filled);
        let earned = passed.as_nanos().saturating_mul(u128::from(rate)) / 1_000_000_000;
        if earned > 0 {
            let most = i128::from((rate / BURSTS_PER_SECOND).max(1));
            self.tokens = self.tokens.saturating_add_unsigned(earned).min(most);
            self.filled = now;
        }
    }

    fn spend(&mut self, tokens: usize) {
        if self.rate.is_some() {
            self.tokens -= tokens as i128;
        }
    }

    /// Returns the time until there is a token.
    fn wait(&self) -> Duration {
        let Some(rate) = self.rate.filter(|_| self.tokens <= 0) else { return Duration::ZERO };
        let missing = u64::try_from(1 - self.tokens).unwrap_or(0);
        Duration::from_nanos(missing.saturating_mul(1_000_000_000).div_ceil(rate))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::udp::options::{DEFAULT_LEGACY_PACE, DEFAULT_LEGACY_RATE};

    #[test]
    fn the_bytes_of_a_second_are_the_rate() {
        let begin = Instant::now();
        let mut rate_limit = RateLimit::new(Some(1_000_000), None, begin);
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
        let mut rate_limit = RateLimit::new(Some(100), None, begin);
        assert!(rate_limit.may_send(begin + Duration::from_secs(1)));
        rate_limit.spend(1400);
        assert_eq!(rate_limit.wait(), Duration::from_secs(14));
        assert!(!rate_limit.may_send(begin + Duration::from_secs(14)));
        assert!(rate_limit.may_send(begin + Duration::from_secs(15)));
    }

    #[test]
    fn idle_time_does_not_add_up_to_a_burst() {
        let begin = Instant::now();
        let mut rate_limit = RateLimit::new(Some(1 << 20), None, begin);
        assert!(rate_limit.may_send(begin + Duration::from_secs(3600)));
        rate_limit.spend((1 << 20) / BURSTS_PER_SECOND as usize);
        assert!(!rate_limit.may_send(begin + Duration::from_secs(3600)));
    }

    /// Charge of Linux 6.18 for a datagram over loopback, found by counting how many a socket buffer holds.
    fn charge(payload: usize) -> usize {
        match payload {
            0..=150 => 832,
            151..=400 => 1284,
            _ => 2316,
        }
    }

    /// A client whose socket has the default buffer reads a million events of the default session, and is repeatedly kept from reading for 18 ms.
    /// Returns the number of datagrams for which its socket had no space.
    fn dropped(payload: usize, bytes: u64, datagrams: Option<u32>) -> u32 {
        const BUFFER: usize = 212_992;
        const EVENTS: u32 = 1_000_000;
        let begin = Instant::now();
        let mut rate_limit = RateLimit::new(Some(bytes), datagrams, begin);
        let (mut sent, mut dropped, mut charged) = (0, 0, 0);
        for ms in 1.. {
            // The server oversleeps by 3 ms at times, and makes up for it.
            if ms % 100 < 3 {
                continue;
            }
            let now = begin + Duration::from_millis(ms);
            while sent < EVENTS && rate_limit.may_send(now) {
                rate_limit.spend(payload);
                sent += 1;
                // The kernel drops datagrams when the buffer is full; the datagram that fills it is accepted.
                if charged > BUFFER {
                    dropped += 1;
                } else {
                    charged += charge(payload);
                }
            }
            if ms % 50 >= 18 {
                charged = 0;
            }
            if sent == EVENTS {
                break;
            }
        }
        dropped
    }

    #[test]
    fn a_legacy_client_with_the_default_buffer_loses_none_of_a_million_events() {
        for payload in [67, 100, 200, 400, 700, 1000, 1500] {
            assert_eq!(dropped(payload, DEFAULT_LEGACY_RATE, Some(DEFAULT_LEGACY_PACE)), 0, "of {payload} bytes");
        }
        // Without the limit on datagrams, it loses some.
        assert!(dropped(100, DEFAULT_LEGACY_RATE, None) > 10_000);
    }
}
