//! The state of the supply of spare rings: see `supplier`.

use super::pool::Pool;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// With fewer spare rings, a thread that takes one wakes the supplier.
pub(super) const FEW: usize = 2;
/// How long rings stay unused before their memory is given back.
pub(super) const PERIOD: Duration = Duration::from_secs(4);
/// For how many periods, a minute in all, the small rings of the largest crowd are kept.
const REMEMBERED: usize = 15;

/// The spare rings of one size.
#[derive(Debug)]
pub(super) struct Spares {
    pub(super) pool: Pool,
    /// The rings that the last round left in the pool. Relaxed: it is read for an estimate.
    pub(super) left: AtomicUsize,
}

impl Spares {
    pub(super) fn new(entries: usize) -> Self {
        Self { pool: Pool::new(entries), left: AtomicUsize::new(0) }
    }

    /// Whether the supplier is to be woken after a thread has taken a ring from these: the last but one is taken, or half of those that the last
    /// round left.
    pub(super) fn are_few(&self) -> bool {
        self.pool.count() < FEW.max(self.left.load(Ordering::Relaxed) / 2)
    }
}

/// The state of the supply.
#[derive(Debug)]
pub(super) struct Supply {
    /// Whether the last round ended by its deadline, before it had made all rings that it wanted. Relaxed: it is read for an estimate.
    pub(super) is_behind: AtomicBool,
    /// Whether the last round could make rings, for threads that begin, and large ones, for threads whose ring is full or outgrown. Relaxed: at
    /// worst a thread wakes the supplier in vain.
    pub(super) can_make: AtomicBool,
    pub(super) can_make_large: AtomicBool,
    pub(super) round: Mutex<Round>,
}

/// What the rounds know of the rings of one size.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// How many rings the pool is to have, for as many threads as took rings in a round.
    pub(super) wanted: usize,
    /// The rings of threads that had ended when the period began, without those that were recycled since.
    pub(super) unused_ended: usize,
    /// The largest numbers of rings in use at once, in the last periods, the oldest first.
    crowds: [usize; REMEMBERED],
}

impl Seen {
    /// A period has ended, in which so many rings were in use at most; the largest number in all that are remembered.
    pub(super) fn remember(&mut self, crowd: usize) -> usize {
        self.crowds.rotate_left(1);
        self.crowds[REMEMBERED - 1] = crowd;
        self.crowds.iter().copied().max().unwrap_or(crowd)
    }
}

#[derive(Debug)]
pub(super) struct Round {
    pub(super) large: Seen,
    pub(super) small: Seen,
    /// Whether the pool of large rings has once been full, or could not be filled.
    pub(super) was_filled: bool,
    /// Events that were lost without a ring, as of the last round.
    pub(super) ringless: u64,
    /// How many rings threads had gone on in, as of the last round: because their ring was full, and because it was small.
    pub(super) overflowed: u64,
    pub(super) grown: usize,
    /// When the threads of the process were counted last.
    pub(super) counted: Instant,
    /// How many had no ring then; `None` if that is not known.
    pub(super) others: Option<usize>,
    /// The fewest of these in the period.
    pub(super) fewest_others: usize,
    /// How many threads had no ring for a whole period: they do not record. At first all are taken for such threads.
    pub(super) idle: usize,
    /// When the period began.
    pub(super) since: Instant,
    /// The size of the first ring, which no other exceeds; 0 before it is made.
    pub(super) largest: usize,
}

impl Round {
    /// Whether no period has ended yet.
    pub(super) fn is_first_period(&self) -> bool {
        self.idle == usize::MAX
    }
}

impl Supply {
    pub(super) fn new(wanted: usize) -> Self {
        let round = Round {
            large: Seen { wanted, ..Seen::default() },
            small: Seen::default(),
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
        let (can_make, can_make_large) = (can_make(), can_make());
        Self { is_behind: AtomicBool::new(false), can_make, can_make_large, round: Mutex::new(round) }
    }
}
