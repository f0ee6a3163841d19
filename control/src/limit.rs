//! Brakes: no more than so many events in a time, the others suppressed and counted as such.
//!
//! The step before is a rule's filter, so that what it refuses takes nothing; the step after is the reserve in the ring.

use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// How many events a rule may record: on average no more than so many in a time, and at once no more than a burst.
///
/// In any span of time T at most `burst + rate × T` events are let through, over all threads of the process; what counts is the time that
/// the events themselves have, by the clock of the session. What is let through and then lost (because a ring is full) has used up its
/// place all the same.
///
/// ```
/// use std::time::Duration;
/// use tracepoint_control::Limit;
///
/// let limit = Limit::per_second(1000).burst(20);
/// assert_eq!(limit.to_string(), "1000/s burst 20");
/// assert_eq!("1000/s burst 20".parse(), Ok(limit));
/// assert_eq!("5/min".parse(), Ok(Limit::new(5, Duration::from_secs(60))));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    events: u64,
    period: Duration,
    burst: u64,
}

/// The units that a limit is written in, and their lengths in ns; the largest first.
const UNITS: [(&str, u64); 6] = [
    ("h", 3_600_000_000_000),
    ("min", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1000),
    ("ns", 1),
];

/// The longest span that a bucket looks ahead, in ns: a year. Times are far from the end of 64 bits then.
const LONGEST: u64 = 365 * 24 * 3_600_000_000_000;

impl Limit {
    /// `events` in each `period`, and all of them at once if nothing came before.
    pub const fn new(events: u64, period: Duration) -> Self {
        Self { events, period, burst: events }
    }

    /// `events` in a second, and all of them at once if nothing came before.
    pub const fn per_second(events: u64) -> Self {
        Self::new(events, Duration::from_secs(1))
    }

    /// How many events may come at once after a quiet time: as many as in a period unless told otherwise, at least 1.
    #[must_use]
    pub const fn burst(mut self, events: u64) -> Self {
        self.burst = events;
        self
    }

    /// Whether it can be kept: at least one event, and at least one ns from one event to the next.
    ///
    /// # Errors
    ///
    /// If it cannot; says why.
    pub(crate) fn check(self) -> Result<Self, LimitError> {
        let bad = |reason: &str| Err(LimitError { text: self.to_string(), reason: reason.to_owned() });
        if self.events == 0 || self.burst == 0 {
            return bad("it lets nothing through; leave the events out with a rule such as `!provider:*`");
        }
        if u128::from(self.events) > self.period.as_nanos() {
            return bad("more than one event in a nanosecond is no limit");
        }
        if self.interval().checked_mul(self.burst).is_none_or(|span| span > LONGEST) {
            return bad("the burst is longer than a year");
        }
        Ok(self)
    }

    /// From one event to the next, in ns; rounded up, so that there are never more.
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
        if self.burst != self.events {
            write!(f, " burst {}", self.burst)?;
        }
        Ok(())
    }
}

/// A limit that does not read as one, or that cannot be kept.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[error("the limit `{text}` will not do: {reason}")]
pub struct LimitError {
    text: String,
    reason: String,
}

impl FromStr for Limit {
    type Err = LimitError;

    /// Reads `N/s`, or another period such as `ms` or `15min`, with ` burst N` behind it or not; the units are `ns`, `us`, `ms`, `s`,
    /// `min` and `h`.
    fn from_str(text: &str) -> Result<Self, LimitError> {
        let bad = || LimitError {
            text: text.to_owned(),
            reason: "expected for example `1000/s`, `5/15min` or `1000/s burst 20`; units are ns, us, ms, s, min and h"
                .to_owned(),
        };
        let number = |word: &str| word.replace('_', "").parse::<u64>().map_err(|_| bad());
        let (rate, burst) = match text.split_whitespace().collect::<Vec<_>>()[..] {
            [rate] => (rate, None),
            [rate, "burst", burst] => (rate, Some(number(burst)?)),
            _ => return Err(bad()),
        };
        let (events, period) = rate.split_once('/').ok_or_else(bad)?;
        let unit = period.trim_start_matches(|c: char| c.is_ascii_digit());
        let (_, ns) = UNITS.into_iter().find(|(name, _)| *name == unit).ok_or_else(bad)?;
        let count = &period[..period.len() - unit.len()];
        let count = if count.is_empty() { 1 } else { number(count)? };
        let period = Duration::from_nanos(count.checked_mul(ns).ok_or_else(bad)?);
        let limit = Self::new(number(events)?, period);
        burst.map_or(limit, |burst| limit.burst(burst)).check()
    }
}

/// A limit as it is kept: a token bucket, told by the time at which it will be full again.
///
/// The bucket is full when that time is past, and each event that is let through moves it by an interval; an event for which it would be
/// more than a burst ahead is suppressed. One word, so that threads need no lock.
#[derive(Debug)]
pub(crate) struct Bucket {
    /// When it will be full, in ns on the clock of the events.
    full_at: AtomicU64,
    interval: u64,
    /// How far ahead that may be.
    span: u64,
}

impl Bucket {
    /// How often an event tries to take a token before it gives up.
    const TRIES: usize = 64;

    /// A full one. The limit was checked.
    pub(crate) fn new(limit: Limit) -> Self {
        let interval = limit.interval();
        Self { full_at: AtomicU64::new(0), interval, span: interval.saturating_mul(limit.burst) }
    }

    /// Takes a token for an event at `now`; `false` if there is none.
    ///
    /// Wait-free: a try fails only if another event has taken a token since the word was read, so that who gives up after 64 of them has
    /// seen 64 events let through. An event that is suppressed costs a load.
    #[inline]
    pub(crate) fn take(&self, now: u64) -> bool {
        // Relaxed throughout: the word orders nothing but itself.
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

    /// Of events at these times, which are let through.
    fn let_through(bucket: &Bucket, times: impl IntoIterator<Item = u64>) -> Vec<u64> {
        times.into_iter().filter(|time| bucket.take(*time)).collect()
    }

    #[test]
    fn a_burst_and_then_the_rate() {
        let bucket = Bucket::new(Limit::new(1, Duration::from_nanos(10)).burst(3));
        assert_eq!(let_through(&bucket, [100; 5]), [100; 3]);
        assert_eq!(let_through(&bucket, 101..150), [110, 120, 130, 140]);
        // Time saved up is no more than a burst.
        assert_eq!(let_through(&bucket, [1000; 5]), [1000; 3]);
        // A clock behind it gets nothing that was taken already.
        assert_eq!(let_through(&bucket, [990, 1000, 1009, 1010]), [1010]);
    }

    #[test]
    fn the_ends_of_time() {
        for limit in
            [Limit::per_second(1), Limit::new(u64::MAX, Duration::from_nanos(u64::MAX)), Limit::new(1, Duration::MAX)]
        {
            let bucket = Bucket::new(limit);
            for now in [0, u64::MAX, 0, 1, u64::MAX] {
                bucket.take(now);
            }
        }
        let bucket = Bucket::new(Limit::per_second(3));
        assert_eq!(let_through(&bucket, [0; 9]).len(), 3, "a clock that stands still");
    }

    #[test]
    fn no_more_than_the_tokens_whoever_takes_them() {
        let bucket = Bucket::new(Limit::per_second(1000).burst(500));
        let taken: usize = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| let_through(&bucket, [7; 1000]).len())).collect();
            threads.into_iter().map(|thread| thread.join().expect("counts")).sum()
        });
        assert_eq!(taken, 500);
    }

    #[test]
    fn limits_are_written_and_read() {
        for text in ["1000/s", "5/min", "1/h burst 3", "20/ms burst 1", "3/us", "5/15min", "7/1500ms", "1/ns"] {
            assert_eq!(text.parse::<Limit>().map(|limit| limit.to_string()), Ok(text.to_owned()));
        }
        for text in [
            "",
            "5",
            "5/",
            "/s",
            "5/day",
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
            assert!(error.to_string().starts_with(&format!("the limit `{text}` will not do")), "{error}");
        }
    }
}
