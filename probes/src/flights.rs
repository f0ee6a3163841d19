//! Operations in flight: a lock-free table from the identity of an operation to its begin time.
//!
//! The table is set-associative: an operation occupies one of the [`WAYS`] ways of the set that its identity selects, so a search is
//! bounded and entries never move. The identities of a set fill a cache line, and its times the next. Each way is a word for the time, which
//! owns the way, and a word for the identity:
//!
//! ```text
//!   FREE ──CAS─▶ OWNED ──identity, then time (Release)──▶ time ──CAS─▶ OWNED ──is it the identity looked for?──▶ FREE, or the time again
//! ```
//!
//! A way is changed only by the thread that owns it, for a few instructions: a begin and an end each take one compare-and-swap. No thread
//! waits for an owner: an owned way counts as one of another operation. The owner may be interrupted by a handler, or by the scheduler.
//! An end that finds its way owned by another end, which examines it by mistake, is counted as unmatched. `models/` checks the table with loom.

use crate::layout::{FLIGHTS, SETS, WAYS};
#[cfg(loom)]
use loom::sync::atomic::{AtomicU64, Ordering};
#[cfg(not(loom))]
use std::sync::atomic::{AtomicU64, Ordering};

/// The words of the table.
pub(crate) type Table = [AtomicU64; FLIGHTS];
type Ways = [AtomicU64; WAYS];

/// The way is free.
const FREE: u64 = 0;
/// A thread is changing the way. No time has the value 1.
const OWNED: u64 = 1;

/// The result of a begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BeginOutcome {
    New,
    /// An operation with an equal key was in flight; its begin is discarded.
    Replaced,
    NoRoom,
}

/// A set: its identities, and its times.
#[derive(Clone, Copy)]
struct Set<'a> {
    identities: &'a Ways,
    times: &'a Ways,
}

impl<'a> Set<'a> {
    #[inline(always)]
    fn of(table: &'a Table, identity: u64) -> Self {
        let at = ((u128::from(identity) * SETS as u128) >> 64) as usize * 2 * WAYS;
        let ways = |at: usize| table[at..].first_chunk().expect("the table has whole sets");
        Self { identities: ways(at), times: ways(at + WAYS) }
    }

    /// Takes ownership of the way that holds the operation, and returns the way and its time.
    #[inline(always)]
    fn take(self, identity: u64) -> Option<(&'a AtomicU64, u64)> {
        let way = (0..WAYS).find(|&way| self.identities[way].load(Ordering::Relaxed) == identity)?;
        own(&self.identities[way], &self.times[way], identity).or_else(|| self.take_behind(way, identity))
    }

    /// Continues the search after a way that has the identity but is free or being changed.
    #[inline(never)]
    fn take_behind(self, first: usize, identity: u64) -> Option<(&'a AtomicU64, u64)> {
        let mut ways = self.identities.iter().zip(self.times).skip(first + 1);
        ways.find_map(|(of_way, word)| own(of_way, word, identity))
    }
}

/// Takes ownership of a way, if it still holds an operation with this identity.
#[inline(always)]
fn own<'a>(of_way: &AtomicU64, word: &'a AtomicU64, identity: u64) -> Option<(&'a AtomicU64, u64)> {
    let time = word.load(Ordering::Relaxed);
    if time <= OWNED || of_way.load(Ordering::Relaxed) != identity {
        return None;
    }
    // O1: Acquire pairs with the Release stores of times in `begin` and below: the identity read next belongs to this time.
    word.compare_exchange(time, OWNED, Ordering::Acquire, Ordering::Relaxed).ok()?;
    if of_way.load(Ordering::Relaxed) == identity {
        return Some((word, time));
    }
    // The way was freed, and taken by another operation with the same time.
    word.store(time, Ordering::Release); // O1
    None
}

/// Registers an operation that began at `time`.
#[inline(always)]
pub(crate) fn begin(table: &Table, identity: u64, time: u64) -> BeginOutcome {
    let set = Set::of(table, identity);
    let time = time.max(OWNED + 1);
    if let Some((word, _)) = set.take(identity) {
        word.store(time, Ordering::Release); // O1
        return BeginOutcome::Replaced;
    }
    for (of_way, word) in set.identities.iter().zip(set.times) {
        // O2: Acquire pairs with the Release store in `end`: the identity stored next comes after the previous owner's identity.
        if word.load(Ordering::Relaxed) == FREE
            && word.compare_exchange(FREE, OWNED, Ordering::Acquire, Ordering::Relaxed).is_ok()
        {
            of_way.store(identity, Ordering::Relaxed);
            word.store(time, Ordering::Release); // O1
            return BeginOutcome::New;
        }
    }
    BeginOutcome::NoRoom
}

/// Ends an operation, and returns its begin time.
#[inline(always)]
pub(crate) fn end(table: &Table, identity: u64) -> Option<u64> {
    let (word, time) = Set::of(table, identity).take(identity)?;
    word.store(FREE, Ordering::Release); // O2
    Some(time)
}

/// Number of operations that have begun and not ended.
pub(crate) fn in_flight(table: &Table) -> u64 {
    let times = table.chunks_exact(2 * WAYS).flat_map(|set| &set[WAYS..]);
    times.filter(|time| time.load(Ordering::Relaxed) != FREE).count() as u64
}
