//! Where enabled events end: a count and a sum, so that a bench can prove that a variant was on and that nothing was lost.

use std::sync::atomic::{AtomicU64, Ordering};

static COUNT: AtomicU64 = AtomicU64::new(0);
static SUM: AtomicU64 = AtomicU64::new(0);
static BYTES: AtomicU64 = AtomicU64::new(0);

/// What arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tally {
    /// How many events.
    pub count: u64,
    /// The sum of all their arguments, wrapping. Stays 0 where a peer counts hits but does not hand over values.
    pub sum: u64,
    /// How many bytes they took, if they were kept and their size is known.
    pub bytes: u64,
}

impl Tally {
    /// Whether both are of the same events, wherever they were kept.
    pub const fn same_events(self, other: Self) -> bool {
        self.count == other.count && self.sum == other.sum
    }
}

/// Notes one event. A load and a store, no locked instruction, which would cost more than most of what is measured: events
/// come from one thread at a time, and a thread that reports is joined before the next one does.
#[inline(always)]
pub fn add(a: i32, b: i32, c: i64) {
    COUNT.store(COUNT.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    let values = i64::from(a).wrapping_add(i64::from(b)).wrapping_add(c).cast_unsigned();
    SUM.store(SUM.load(Ordering::Relaxed).wrapping_add(values), Ordering::Relaxed);
}

/// Notes `hits` events whose values are not known.
pub fn add_hits(hits: u64) {
    COUNT.store(COUNT.load(Ordering::Relaxed) + hits, Ordering::Relaxed);
}

/// Notes that events took so many bytes.
pub fn add_bytes(bytes: u64) {
    BYTES.store(BYTES.load(Ordering::Relaxed) + bytes, Ordering::Relaxed);
}

/// Reads and clears.
pub fn take() -> Tally {
    let take = |cell: &AtomicU64| cell.swap(0, Ordering::Relaxed);
    Tally { count: take(&COUNT), sum: take(&SUM), bytes: take(&BYTES) }
}
