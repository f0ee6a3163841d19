//! Rate limits of rules: events over the limit are suppressed, and counted as suppressed.
//!
//! The limit is applied after the rule's filter, so that an event rejected by the filter takes no token, and before space in the ring is
//! reserved.

use crate::from_text::try_from_text;
use serde::{Deserialize, Serialize};
use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The maximum number of events that a rule records: a rate, and a burst that may come at once.
///
/// In any interval of length T, at most `burst + rate × T` events pass, over all threads of the process. Times are those of the events, by
/// the clock of the session. An event that passes and is then lost, for example because a ring is full, has used its token.
///
/// ```
/// use std::time::Duration;
/// use tracepoint_session_spec::Limit;
///
/// let limit = Limit::per_second(1000).burst(20);
/// assert_eq!(limit.to_string(), "1000/s burst 20");
/// assert_eq!("1000/s burst 20".parse(), Ok(limit));
/// assert_eq!("5/min".parse(), Ok(Limit::new(5, Duration::from_secs(60))));
/// assert_eq!("100k".parse(), Ok(Limit::per_second(100_000)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Limit {
    events: u64,
    period: Duration,
    burst: u64,
}

/// The units in which a limit is displayed, and their lengths in ns, the largest first.
const UNITS: [(&str, u64); 6] = [
    ("h", 3_600_000_000_000),
    ("min", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1000),
    ("ns", 1),
];

/// Maximum time that a burst may take, in ns: a year, so that sums of times cannot overflow 64 bits.
const LONGEST: u64 = 365 * 24 * 3_600_000_000_000;

impl Limit {
    /// Creates a limit of `events` in each `period`; the burst is the same number.
    pub const fn new(events: u64, period: Duration) -> Self {
        Self { events, period, burst: events }
    }

    /// Creates a limit of `events` per second; the burst is the same number.
    pub const fn per_second(events: u64) -> Self {
        Self::new(events, Duration::from_secs(1))
    }

    /// Sets the number of events that may pass at once after a quiet time, at least 1. The default is the number of events in a period.
    #[must_use]
    pub const fn burst(mut self, events: u64) -> Self {
        self.burst = events;
        self
    }

    /// Fails if the limit cannot be applied: it needs at least one event per period, and at least 1 ns between two events.
    pub(crate) fn check(self) -> Result<Self, LimitError> {
        let bad = |reason: &str| Err(LimitError { text: self.to_string(), reason: reason.to_owned() });
        if self.events == 0 || self.burst == 0 {
            return bad("it lets nothing pass; exclude the events with a rule such as `!provider:*`");
        }
        if u128::from(self.events) > self.period.as_nanos() {
            return bad("more than one event in a nanosecond cannot be counted; leave the limit out");
        }
        if self.interval().checked_mul(self.burst).is_none_or(|span| span > LONGEST) {
            return bad("a burst may not span more than a year; use a smaller burst or a higher rate");
        }
        Ok(self)
    }

    /// Returns the number of events that may pass in each [period](Self::period).
    pub(crate) const fn events(self) -> u64 {
        self.events
    }

    pub(crate) const fn period(self) -> Duration {
        self.period
    }

    /// Returns whether the burst differs from the number of events in a period.
    pub(crate) const fn has_burst(self) -> bool {
        self.burst != self.events
    }

    /// Returns the time between two events in ns, rounded up so that the rate is never exceeded.
    fn interval(self) -> u64 {
        u64::try_from(self.period.as_nanos().div_ceil(u128::from(self.events.max(1)))).unwrap_or(u64::MAX)
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let period = self.period.as_nanos();
        let whole = UNITS.into_iter().map(|(unit, ns)| (unit, period / u128::from(ns), period % u128::from(ns)));
        match whole.into_iter().find(|(_, count, rest)| *count > 0 && *rest == 0) {
            Some((unit, 1, _)) => write!(f, "{}/{unit}", self.events)?,
            Some((unit, count, _)) => write!(f, "{}/{count}{unit}", self.events)?,
            None => write!(f, "{}/0s", self.events)?,
        }
        if self.has_burst() {
            write!(f, " burst {}", self.burst)?;
        }
        Ok(())
    }
}

impl From<Limit> for String {
    fn from(limit: Limit) -> Self {
        limit.to_string()
    }
}

/// The text is not a limit, or the limit cannot be applied.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[error("the limit `{text}` cannot be used: {reason}")]
pub struct LimitError {
    text: String,
    reason: String,
}

impl FromStr for Limit {
    type Err = LimitError;

    /// Parses `N/s`, or `N` and another period such as `ms` or `15min`, optionally followed by ` burst N`. Without a period, N is per
    /// second. N may end with `k` or `M`, for thousands and millions.
    fn from_str(text: &str) -> Result<Self, LimitError> {
        let bad = || LimitError {
            text: text.to_owned(),
            reason: "expected for example `1000/s`, `100k/s`, `5/15min` or `1000/s burst 20`".to_owned(),
        };
        let number = |word: &str| {
            let digits = word.trim_end_matches(['k', 'K', 'M']);
            let factor = match &word[digits.len()..] {
                "" => 1,
                "M" => 1_000_000,
                "k" | "K" => 1000,
                _ => return Err(bad()),
            };
            digits.replace('_', "").parse::<u64>().ok().and_then(|count| count.checked_mul(factor)).ok_or_else(bad)
        };
        let (rate, burst) = match text.split_whitespace().collect::<Vec<_>>()[..] {
            [rate] => (rate, None),
            [rate, "burst", burst] => (rate, Some(number(burst)?)),
            _ => return Err(bad()),
        };
        let (events, period) = rate.split_once('/').unwrap_or((rate, "s"));
        let count = if period.starts_with(|c: char| c.is_ascii_digit()) { "" } else { "1" };
        let period = humantime::parse_duration(&format!("{count}{}", period.replace('_', ""))).map_err(|_| bad())?;
        let limit = Self::new(number(events)?, period);
        burst.map_or(limit, |burst| limit.burst(burst)).check()
    }
}

try_from_text!(Limit, LimitError);

/// For limits that are given as values in place of texts.
impl From<Infallible> for LimitError {
    fn from(error: Infallible) -> Self {
        match error {}
    }
}

/// The state of a limit: a token bucket (GCRA), represented by the time at which it will be full.
///
/// The bucket is full when that time is past. Each event that passes moves the time by one interval; an event that would move it more than a
/// burst ahead is suppressed. The state is one word, so that threads need no lock.
#[derive(Debug)]
pub struct Bucket {
    /// The time at which the bucket will be full, in ns on the clock of the events.
    full_at: AtomicU64,
    interval: u64,
    /// Maximum distance of that time from the time of an event, in ns.
    span: u64,
}

impl Bucket {
    /// Number of attempts of an event to take a token before it is suppressed.
    const TRIES: usize = 64;

    /// Creates a full bucket for a checked limit.
    pub fn new(limit: Limit) -> Self {
        let interval = limit.interval();
        Self { full_at: AtomicU64::new(0), interval, span: interval.saturating_mul(limit.burst) }
    }

    /// Takes a token for an event at `now`; returns `false` if there is none.
    ///
    /// Wait-free: an attempt fails only if another event took a token after the word was read, so 64 other events have passed when an event
    /// gives up after 64 attempts. A suppressed event costs one load.
    #[inline]
    pub(crate) fn take(&self, now: u64) -> bool {
        // Relaxed throughout: the word publishes no other memory.
        let mut full_at = self.full_at.load(Ordering::Relaxed);
        for _ in 0..Self::TRIES {
            let next = full_at.max(now).saturating_add(self.interval);
            if next - now > self.span {
                return false;
            }
            match self.full_at.compare_exchange(full_at, next, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(other) => full_at = other,
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the times at which an event passes.
    fn passed(bucket: &Bucket, times: impl IntoIterator<Item = u64>) -> Vec<u64> {
        times.into_iter().filter(|time| bucket.take(*time)).collect()
    }

    #[test]
    fn the_burst_passes_then_the_rate_applies() {
        let bucket = Bucket::new(Limit::new(1, Duration::from_nanos(10)).burst(3));
        assert_eq!(passed(&bucket, [100; 5]), [100; 3]);
        assert_eq!(passed(&bucket, 101..150), [110, 120, 130, 140]);
        // A long quiet time accumulates no more than a burst.
        assert_eq!(passed(&bucket, [1000; 5]), [1000; 3]);
        // Events with older times get no token that was already taken.
        assert_eq!(passed(&bucket, [990, 1000, 1009, 1010]), [1010]);
    }

    #[test]
    fn extreme_times_do_not_overflow() {
        for limit in
            [Limit::per_second(1), Limit::new(u64::MAX, Duration::from_nanos(u64::MAX)), Limit::new(1, Duration::MAX)]
        {
            let bucket = Bucket::new(limit);
            for now in [0, u64::MAX, 0, 1, u64::MAX] {
                bucket.take(now);
            }
        }
        let bucket = Bucket::new(Limit::per_second(3));
        assert_eq!(passed(&bucket, [0; 9]).len(), 3, "a clock that stands still");
    }

    #[test]
    fn threads_share_the_tokens() {
        let bucket = Bucket::new(Limit::per_second(1000).burst(500));
        let taken: usize = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| passed(&bucket, [7; 1000]).len())).collect();
            threads.into_iter().map(|thread| thread.join().expect("counts")).sum()
        });
        assert_eq!(taken, 500);
    }

    #[test]
    fn limits_round_trip_through_text() {
        for text in ["1000/s", "5/min", "1/h burst 3", "20/ms burst 1", "3/us", "5/15min", "7/1500ms", "1/ns"] {
            assert_eq!(text.parse::<Limit>().map(|limit| limit.to_string()), Ok(text.to_owned()));
        }
        assert_eq!("5/day".parse::<Limit>().map(|limit| limit.to_string()), Ok("5/24h".to_owned()));
        assert_eq!("1_000/1_000ms".parse::<Limit>(), Ok(Limit::per_second(1000)));
        assert_eq!("5".parse::<Limit>(), Ok(Limit::per_second(5)));
        assert_eq!("2M/min burst 1K".parse::<Limit>(), Ok(Limit::new(2_000_000, Duration::from_secs(60)).burst(1000)));
        for text in [
            "",
            "5/",
            "k/s",
            "5kk",
            "99999999999999M",
            "/s",
            "5/fortnight",
            "0/s",
            "5/s burst 0",
            "5/s burst",
            "5/s 3",
            "-1/s",
            "2000/us",
            "1/0s",
            "1/99999999h",
            "1/h burst 99999",
        ] {
            let error = text.parse::<Limit>().expect_err(text);
            assert!(error.to_string().starts_with(&format!("the limit `{text}` cannot be used")), "{error}");
        }
    }
}
