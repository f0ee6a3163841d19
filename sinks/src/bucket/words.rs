//! The words of a bucket, and the reservation by compare-and-swap. `models/` checks it with loom.
//!
//! All accesses are relaxed. The word `taken` is the whole state and publishes no other data; if a rate is read late, one slice is charged at the
//! former rate.

#[cfg(loom)]
use loom::sync::atomic::{AtomicU64, Ordering};
#[cfg(not(loom))]
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A word further ahead than this was left by an earlier boot.
const MAX_AHEAD: Duration = Duration::from_secs(120);

/// The words of a bucket, at the beginning of the file that senders map. Any values are valid; zeros mean a bucket without a limit.
#[derive(Debug, Default)]
#[repr(C)]
pub struct BucketWords {
    /// The rate in bytes per second; 0: no limit.
    rate: AtomicU64,
    /// The time up to which the bandwidth is taken, in ns of `CLOCK_MONOTONIC`.
    taken: AtomicU64,
    /// Number of bytes charged so far, with or without a limit.
    charged: AtomicU64,
}

impl AsRef<Self> for BucketWords {
    fn as_ref(&self) -> &Self {
        self
    }
}

impl BucketWords {
    pub(crate) fn rate(&self) -> Option<u64> {
        Some(self.rate.load(Ordering::Relaxed)).filter(|rate| *rate > 0)
    }

    pub(crate) fn set_rate(&self, rate: Option<u64>) {
        self.rate.store(rate.unwrap_or(0), Ordering::Relaxed);
    }

    pub(crate) fn charged(&self) -> u64 {
        self.charged.load(Ordering::Relaxed)
    }

    /// Reserves the time for these bytes, if that begins at `latest` or before, and returns when it begins.
    pub(crate) fn reserve(&self, bytes: usize, now: u64, depth: Duration, latest: u64) -> Option<u64> {
        let send_at = self.rate().map_or(Some(now), |rate| self.take(ns(bytes, rate), now, depth, latest))?;
        self.charged.fetch_add(bytes as u64, Ordering::Relaxed);
        Some(send_at)
    }

    /// Takes the next `cost` nanoseconds.
    fn take(&self, cost: u64, now: u64, depth: Duration, latest: u64) -> Option<u64> {
        let mut taken = self.taken.load(Ordering::Relaxed);
        loop {
            let begin = begin(taken, now, depth);
            let send_at = begin.max(now);
            if send_at > latest {
                return None;
            }
            let end = begin.saturating_add(cost);
            match self.taken.compare_exchange_weak(taken, end, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return Some(send_at),
                Err(found) => taken = found,
            }
        }
    }

    /// Returns when a reservation made now would begin.
    pub(crate) fn next(&self, now: u64, depth: Duration) -> u64 {
        let taken = self.taken.load(Ordering::Relaxed);
        if self.rate().is_some() { begin(taken, now, depth).max(now) } else { now }
    }
}

fn begin(taken: u64, now: u64, depth: Duration) -> u64 {
    let earliest = now.saturating_sub(depth.as_nanos() as u64);
    if taken > now.saturating_add(MAX_AHEAD.as_nanos() as u64) { earliest } else { taken.max(earliest) }
}

/// Returns the duration of these bytes, rounded up.
pub(crate) fn ns(bytes: usize, rate: u64) -> u64 {
    let ns = (bytes as u128 * 1_000_000_000).div_ceil(u128::from(rate.max(1)));
    u64::try_from(ns).unwrap_or(u64::MAX)
}
