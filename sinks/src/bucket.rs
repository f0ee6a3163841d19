//! A token bucket that several senders share, also those of other processes, without a lock.
//!
//! Its state is one word: the time up to which the bandwidth is *taken*, in ns of `CLOCK_MONOTONIC` as the initial time namespace has it. A sender reserves the time that its bytes
//! need at the rate, behind what is taken, and sends them when that time begins:
//!
//! ```text
//!          now - DEPTH        now             taken
//!   ───────────┴───────────────┴────────────────┴──────────────┬──────▶ time
//!              unused time before now is left   │  bytes/rate  │
//!              for a burst                      begin          taken, after the reservation
//! ```
//!
//! The word is changed by compare-and-swap from what was read, so that reservations never overlap, and are served in their order. There is no
//! moment at which a sender holds the bucket: one that is killed before the exchange has changed nothing, and one that is killed behind it
//! leaves the time of one slice unused. In each window of W seconds senders begin to send at most rate × (W + DEPTH) bytes, and one slice.

mod words;

use rustix::time::{ClockId, clock_gettime};
use std::cell::Cell;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tracepoint_reader::time_namespace::TimeNamespace;
pub use words::BucketWords;

/// How much unused time is left for a burst.
pub(crate) const DEPTH: Duration = Duration::from_millis(100);
/// A token bucket: all its clones share one rate.
#[derive(Clone)]
pub struct Bucket(Arc<dyn AsRef<BucketWords> + Send + Sync>);

impl fmt::Debug for Bucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Bucket").field((*self.0).as_ref()).finish()
    }
}

impl Bucket {
    /// A bucket whose words are in this memory, which other processes may have mapped.
    pub fn over(words: impl AsRef<BucketWords> + Send + Sync + 'static) -> Self {
        Self(Arc::new(words))
    }

    /// A bucket of this process, with a rate in bytes per second.
    pub(crate) fn private(rate: u64) -> Self {
        let bucket = Self::over(BucketWords::default());
        bucket.set_rate(Some(rate));
        bucket
    }

    fn words(&self) -> &BucketWords {
        (*self.0).as_ref()
    }

    /// The rate in bytes per second; `None` without a limit.
    pub fn rate(&self) -> Option<u64> {
        self.words().rate()
    }

    /// Sets the rate in bytes per second; `None`: no limit. Holds for the next slice of each sender: at most 64 KiB, or 10 ms at the former rate.
    pub fn set_rate(&self, rate: Option<u64>) {
        self.words().set_rate(rate);
    }

    /// Bytes that were charged so far.
    pub fn charged(&self) -> u64 {
        self.words().charged()
    }

    /// Reserves the time for these bytes, if it begins at `latest` or before: when they may be sent. Times are in ns of `CLOCK_MONOTONIC`; `depth`
    /// is how much unused time is left for a burst.
    #[doc(hidden)]
    pub fn reserve(&self, bytes: usize, now: u64, depth: Duration, latest: u64) -> Option<u64> {
        self.words().reserve(bytes, now, depth, latest)
    }

    /// When a reservation that is made now would begin.
    pub(crate) fn next(&self, now: u64, depth: Duration) -> u64 {
        self.words().next(now, depth)
    }
}

/// The present time in ns of `CLOCK_MONOTONIC` in the initial time namespace, which is the same in all processes.
pub(crate) fn now() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    let own = (time.tv_sec.cast_unsigned()).saturating_mul(1_000_000_000).saturating_add(time.tv_nsec.cast_unsigned());
    own.saturating_add_signed(-offset())
}

/// How far `CLOCK_MONOTONIC` is ahead of that of the initial time namespace. A process with threads, as each one that sends is, stays in its
/// namespace (`setns(2)`), but a forked child may be in another one.
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
