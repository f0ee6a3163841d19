//! The state of the supply of spare rings: see `supplier`.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::time::Instant;

/// The state of the supply.
#[derive(Debug)]
pub(super) struct Supply {
    /// The rings that the last round left in the pool. Relaxed: it is read for an estimate.
    pub(super) left: AtomicUsize,
    /// Whether the last round could make all rings that it wanted. Relaxed: at worst a thread wakes the supplier in vain.
    pub(super) can_make: AtomicBool,
    /// Whether the last round ended by its deadline, before it had made all rings that it wanted. Relaxed: it is read for an estimate.
    pub(super) is_behind: AtomicBool,
    pub(super) round: Mutex<Round>,
}

#[derive(Debug)]
pub(super) struct Round {
    /// How many rings the pool is to have, for as many threads as took rings in a round.
    pub(super) wanted: usize,
    /// Whether the pool has once been full, or could not be filled.
    pub(super) was_filled: bool,
    /// Events that were lost without a ring, as of the last round.
    pub(super) ringless: u64,
    /// How many rings threads had gone on in, as of the last round.
    pub(super) overflowed: u64,
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
    /// The fewest rings that a round of the period found in the pool.
    pub(super) fewest_spare: usize,
    /// The rings of threads that had ended when the period began, without those that were recycled since.
    pub(super) unused_ended: usize,
    /// The size of the first ring, which no other exceeds; 0 before it is made.
    pub(super) largest: usize,
}

impl Supply {
    pub(super) fn new(wanted: usize) -> Self {
        let round = Round {
            wanted,
            was_filled: false,
            ringless: 0,
            overflowed: 0,
            counted: Instant::now(),
            others: None,
            fewest_others: usize::MAX,
            idle: usize::MAX,
            since: Instant::now(),
            fewest_spare: usize::MAX,
            unused_ended: 0,
            largest: 0,
        };
        Self {
            left: AtomicUsize::new(0),
            can_make: AtomicBool::new(true),
            is_behind: AtomicBool::new(false),
            round: Mutex::new(round),
        }
    }
}
