//! A lock-free token bucket, shared by several senders, even of other processes.
//!
//! Its state is one word: the time up to which the bandwidth is *taken*, in ns of `CLOCK_MONOTONIC` in the initial time namespace. A sender reserves
//! the time that its bytes need at the rate, after the time already taken, and sends them when that time begins:
//!
//! ```text
//!          now - DEPTH        now             taken
//!   ───────────┴───────────────┴────────────────┴──────────────┬──────▶ time
//!              unused time before now is left   │  bytes/rate  │
//!              for a burst                      begin          taken, after the reservation
//! ```
//!
//! The word is changed by compare-and-swap, so reservations never overlap and are served in order. A sender never holds the bucket: if it is killed
//! before the exchange, nothing has changed; if it is killed after it, the time of one slice stays unused. In each window of W seconds, senders begin
//! to send at most rate × (W + DEPTH) bytes plus one slice.

mod words;

use crate::system;
use std::cell::Cell;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tracepoint_reader::time_namespace::TimeNamespace;
pub use words::BucketWords;

/// Maximum unused time that is available for a burst.
pub(crate) const DEPTH: Duration = Duration::from_millis(100);
/// A token bucket; all clones share one rate.
#[derive(Clone)]
pub struct Bucket(Arc<dyn AsRef<BucketWords> + Send + Sync>);

impl fmt::Debug for Bucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Bucket").field((*self.0).as_ref()).finish()
    }
}

impl Bucket {
    /// Creates a bucket with its words in this memory, which other processes may have mapped.
    pub fn over(words: impl AsRef<BucketWords> + Send + Sync + 'static) -> Self {
        Self(Arc::new(words))
    }

    /// Creates a bucket of this process, with a rate in bytes per second.
    pub(crate) fn private(rate: u64) -> Self {
        let bucket = Self::over(BucketWords::default());
        bucket.set_rate(Some(rate));
        bucket
    }

    fn words(&self) -> &BucketWords {
        (*self.0).as_ref()
    }

    /// Returns the rate in bytes per second; `None` if there is no limit.
    pub fn rate(&self) -> Option<u64> {
        self.words().rate()
    }

    /// Sets the rate in bytes per second; `None` removes the limit. Takes effect with the next slice of each sender: after at most 64 KiB, or 10 ms
    /// at the former rate.
    pub fn set_rate(&self, rate: Option<u64>) {
        self.words().set_rate(rate);
    }

    /// Returns the number of bytes charged so far.
    pub fn charged(&self) -> u64 {
        self.words().charged()
    }

    /// Reserves the time for these bytes, if that begins at `latest` or before, and returns when it begins. Times are in ns of `CLOCK_MONOTONIC`;
    /// `depth` is the maximum unused time that is available for a burst.
    #[doc(hidden)]
    pub fn reserve(&self, bytes: usize, now: u64, depth: Duration, latest: u64) -> Option<u64> {
        self.words().reserve(bytes, now, depth, latest)
    }

    /// Returns when a reservation made now would begin.
    pub(crate) fn next(&self, now: u64, depth: Duration) -> u64 {
        self.words().next(now, depth)
    }
}

/// Returns the current time in ns of `CLOCK_MONOTONIC` in the initial time namespace, which is the same in all processes.
pub(crate) fn now() -> u64 {
    system::monotonic().saturating_add_signed(-offset())
}

/// Returns how far `CLOCK_MONOTONIC` is ahead of the initial time namespace. A process with threads, like each sender, stays in its namespace
/// (`setns(2)`), but a forked child may be in another one.
fn offset() -> i64 {
    thread_local! {
        static KNOWN: Cell<Option<(u32, i64)>> = const { Cell::new(None) };
    }
    let process = std::process::id();
    if let Some((_, offset)) = KNOWN.get().filter(|(of, _)| *of == process) {
        return offset;
    }
    let offset = TimeNamespace::of_this_process().unwrap_or_default().monotonic;
    KNOWN.set(Some((process, offset)));
    offset
}

#[cfg(test)]
mod tests {
    use super::words::ns;
    use super::*;

    const SECOND: u64 = 1_000_000_000;
    const START: u64 = 1000 * SECOND;

    #[test]
    fn no_window_has_more_than_the_rate_and_the_depth() {
        let bucket = Bucket::private(1_000_000);
        let mut now = START;
        let mut sent: Vec<(u64, u64)> = Vec::new();
        for step in 0..40_000_u64 {
            // Bursts of four slices, with and without pauses.
            now += if step.is_multiple_of(4) { (step % 17) * 3_000_000 } else { 0 };
            let at = bucket.reserve(10_000, now, DEPTH, u64::MAX).expect("no limit");
            now = now.max(at);
            sent.push((at, 10_000));
        }
        assert!(sent.is_sorted(), "in order");
        let mut first = 0;
        let mut sum = 0;
        for (index, (at, bytes)) in sent.iter().enumerate() {
            sum += bytes;
            while sent[first].0 + 10 * SECOND < *at {
                sum -= sent[first].1;
                first += 1;
            }
            assert!(sum <= 10_110_000, "{sum} bytes before {index}");
        }
        assert_eq!(bucket.charged(), 400_000_000);
    }

    #[test]
    fn senders_of_one_bucket_share_its_rate() {
        let bucket = Bucket::private(1 << 20);
        let ends = std::thread::scope(|scope| {
            let sender = || (0..1000).map(|_| bucket.reserve(1 << 10, START, DEPTH, u64::MAX).expect("no limit")).max();
            let senders: Vec<_> = (0..4).map(|_| scope.spawn(sender)).collect();
            senders.into_iter().filter_map(|sender| sender.join().expect("no panic")).max().expect("some")
        });
        let expected = START - 100_000_000 + 3999 * ns(1 << 10, 1 << 20);
        assert_eq!(ends, expected, "each slice has a time of its own");
    }

    #[test]
    fn what_would_begin_too_late_is_not_reserved() {
        let bucket = Bucket::private(1000);
        assert_eq!(bucket.reserve(1100, START, DEPTH, START), Some(START), "a burst");
        assert_eq!(bucket.next(START, DEPTH), START + SECOND);
        assert_eq!(bucket.reserve(1, START, DEPTH, START + SECOND - 1), None);
        assert_eq!(bucket.reserve(1, START, DEPTH, START + SECOND), Some(START + SECOND));
        assert_eq!(bucket.charged(), 1101);
    }

    #[test]
    fn without_a_rate_and_after_a_boot_nothing_waits() {
        let bucket = Bucket::private(1000);
        assert!(bucket.reserve(100_000, START, DEPTH, START).is_some());
        bucket.set_rate(None);
        assert_eq!((bucket.rate(), bucket.reserve(1 << 30, START, DEPTH, START)), (None, Some(START)));
        bucket.set_rate(Some(1000));
        let after_boot = 5 * SECOND;
        assert_eq!(bucket.reserve(1, after_boot, DEPTH, after_boot), Some(after_boot));
    }
}
