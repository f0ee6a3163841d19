//! The state of the supply of spare rings: see `supplier`.

use super::pool::Pool;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// With fewer spare rings than this, a thread that takes one wakes the supplier.
pub(super) const FEW: usize = 2;
/// Rings that stay unused for this time lose their memory.
pub(super) const PERIOD: Duration = Duration::from_secs(4);
/// Number of periods, a minute in total, for which the small rings of the largest number of simultaneous threads are kept.
const REMEMBERED: usize = 15;

/// The spare rings of one size.
#[derive(Debug)]
pub(super) struct Spares {
    pub(super) pool: Pool,
    /// Number of rings left in the pool by the last round. Relaxed: it is read for an estimate.
    pub(super) left: AtomicUsize,
}

impl Spares {
    pub(super) fn new(entries: usize) -> Self {
        Self { pool: Pool::new(entries), left: AtomicUsize::new(0) }
    }

    /// Returns whether to wake the supplier after a thread has taken a ring from these: all but the last one are taken, or half of the rings left by
    /// the last round.
    pub(super) fn are_few(&self) -> bool {
        self.pool.count() < FEW.max(self.left.load(Ordering::Relaxed) / 2)
    }
}

/// The state of the supply.
#[derive(Debug)]
pub(super) struct Supply {
    /// True if the last round ended at its deadline before it had created all rings needed. Relaxed: it is read for an estimate.
    pub(super) is_behind: AtomicBool,
    /// True if the last round could create rings: for new threads, and large ones for threads whose ring is full or outgrown. Relaxed: at
    /// worst a thread wakes the supplier in vain.
    pub(super) can_make: AtomicBool,
    pub(super) can_make_large: AtomicBool,
    /// Number of threads that wait for a ring. Relaxed: it is read for an estimate.
    pub(super) waiting: AtomicUsize,
    /// True if a thread has waited for a ring in vain since the last round: until the next one, no other begins to wait. Relaxed: at worst a
    /// thread waits once more.
    pub(super) is_late: AtomicBool,
    pub(super) round: Mutex<Round>,
}

/// The history of the rings of one size.
#[derive(Debug, Default)]
pub(super) struct RingHistory {
    /// Target number of rings in the pool, for as many threads as took rings in a round.
    pub(super) wanted: usize,
    /// Number of rings of threads that had ended when the period began, without those recycled since.
    pub(super) unused_ended: usize,
    /// Maximum numbers of rings in use at the same time, in the last periods, oldest first.
    crowds: [usize; REMEMBERED],
}

impl RingHistory {
    /// Ends a period with a maximum of `crowd` rings in use, and returns the maximum of all remembered periods.
    pub(super) fn remember(&mut self, crowd: usize) -> usize {
        self.crowds.rotate_left(1);
        self.crowds[REMEMBERED - 1] = crowd;
        self.crowds.iter().copied().max().unwrap_or(crowd)
    }
}

#[derive(Debug)]
pub(super) struct Round {
    pub(super) large: RingHistory,
    pub(super) small: RingHistory,
    /// True if the pool of large rings has been full once, or could not be filled.
    pub(super) was_filled: bool,
    /// Number of events lost without a ring, as of the last round.
    pub(super) ringless: u64,
    /// Number of rings that threads had continued in, as of the last round: because their ring was full, and because it was small.
    pub(super) overflowed: u64,
    pub(super) grown: usize,
    /// Time of the last count of the process's threads.
    pub(super) counted: Instant,
    /// Number of threads without a ring then; `None` if unknown.
    pub(super) others: Option<usize>,
    /// Minimum of that number in the period.
    pub(super) fewest_others: usize,
    /// Number of threads that had no ring for a complete period: they do not record. Initially all threads count as such.
    pub(super) idle: usize,
    /// Start of the period.
    pub(super) since: Instant,
    /// The size of the first ring, which no other exceeds; 0 before it is created.
    pub(super) largest: usize,
}

impl Round {
    /// Returns whether no period has ended yet.
    pub(super) fn is_first_period(&self) -> bool {
        self.idle == usize::MAX
    }
}

impl Supply {
    pub(super) fn new(wanted: usize) -> Self {
        let round = Round {
            large: RingHistory { wanted, ..RingHistory::default() },
            small: RingHistory::default(),
            was_filled: false,
            ringless: 0,
            overflowed: 0,
            grown: 0,
            counted: Instant::now(),
            others: None,
            fewest_others: usize::MAX,
            idle: usize::MAX,
            since: Instant::now(),
            largest: 0,
        };
        let can_make = || AtomicBool::new(true);
        Self {
            is_behind: AtomicBool::new(false),
            can_make: can_make(),
            can_make_large: can_make(),
            waiting: AtomicUsize::new(0),
            is_late: AtomicBool::new(false),
            round: Mutex::new(round),
        }
    }
}
