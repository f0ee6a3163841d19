//! The tally of enabled events: a count and a sum, which prove that a variant was on and lost nothing.

use std::sync::atomic::{AtomicU64, Ordering};

static COUNT: AtomicU64 = AtomicU64::new(0);
static SUM: AtomicU64 = AtomicU64::new(0);
static BYTES: AtomicU64 = AtomicU64::new(0);

/// The events that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tally {
    /// The number of events.
    pub count: u64,
    /// The wrapping sum of all arguments; 0 if a peer counts hits without passing values.
    pub sum: u64,
    /// The bytes of these events, if they were kept and their size is known.
    pub bytes: u64,
}

impl Tally {
    /// True if both are of the same events.
    pub const fn same_events(self, other: Self) -> bool {
        self.count == other.count && self.sum == other.sum
    }
}

/// Adds one event, by a load and a store. A locked instruction would cost more than most of the variants, and is not needed: events
/// come from one thread at a time, and a thread that reports is joined before the next one reports.
#[inline(always)]
pub fn add(a: i32, b: i32, c: i64) {
    COUNT.store(COUNT.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    let values = i64::from(a).wrapping_add(i64::from(b)).wrapping_add(c).cast_unsigned();
    SUM.store(SUM.load(Ordering::Relaxed).wrapping_add(values), Ordering::Relaxed);
}

/// Adds `hits` events whose values are not known.
pub fn add_hits(hits: u64) {
    COUNT.store(COUNT.load(Ordering::Relaxed) + hits, Ordering::Relaxed);
}

/// Adds to the bytes of the events.
pub fn add_bytes(bytes: u64) {
    BYTES.store(BYTES.load(Ordering::Relaxed) + bytes, Ordering::Relaxed);
}

/// Returns the tally, and clears it.
pub fn take() -> Tally {
    let take = |cell: &AtomicU64| cell.swap(0, Ordering::Relaxed);
    Tally { count: take(&COUNT), sum: take(&SUM), bytes: take(&BYTES) }
}
