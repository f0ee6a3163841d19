//! Operations in flight: a lock-free table from an identity to the time at which an operation began.
//!
//! The table is set-associative: an operation stands in one of the [`WAYS`] ways of the set that its identity selects, so that a search is
//! bounded and nothing is ever moved. Each way is a word for the time, which owns the way, and a word for the identity:
//!
//! ```text
//!   FREE ──CAS─▶ OWNED ──identity, then time (Release)──▶ time ──CAS─▶ OWNED ──is it the identity looked for?──▶ FREE, or the time again
//! ```
//!
//! A way is read and changed only by the thread that owns it, for a few instructions. No thread waits for an owner: it takes a way that is
//! owned for one that is not its own. The owner may be interrupted by a handler, or by the scheduler; an end that finds its way owned by another
//! end, which looks at it by mistake, is counted as unmatched.

use crate::layout::WAYS;
use std::sync::atomic::{AtomicU64, Ordering};

type Ways = [AtomicU64; WAYS];

/// Nothing is in the way.
const FREE: u64 = 0;
/// A thread is changing the way. No time is 1.
const OWNED: u64 = 1;

/// What became of a beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Begun {
    New,
    /// An operation with an equal key was in flight, whose beginning is forgotten.
    Replaced,
    NoRoom,
}

/// The set of an identity: identities, then times.
#[inline]
fn set(table: &[AtomicU64], identity: u64) -> (&Ways, &Ways) {
    let sets = table.len() / (2 * WAYS);
    let at = ((u128::from(identity) * sets as u128) >> 64) as usize * 2 * WAYS;
    let ways = |at: usize| table[at..].first_chunk().expect("the table has whole sets");
    (ways(at), ways(at + WAYS))
}

/// Owns the way if it holds an operation with this identity; its time.
#[inline]
fn own(identities: &Ways, times: &Ways, way: usize, identity: u64) -> Option<u64> {
    if identities[way].load(Ordering::Relaxed) != identity {
        return None;
    }
    let time = times[way].load(Ordering::Relaxed);
    if time <= OWNED {
        return None;
    }
    // F1: Acquire pairs with the Release stores of times in `begin` and `release`: the identity read next is that of this time.
    times[way].compare_exchange(time, OWNED, Ordering::Acquire, Ordering::Relaxed).ok()?;
    if identities[way].load(Ordering::Relaxed) == identity {
        return Some(time);
    }
    // The way was freed and taken again by another operation, at the same nanosecond.
    times[way].store(time, Ordering::Release); // F1
    None
}

/// Notes that the operation began at `time`.
pub(crate) fn begin(table: &[AtomicU64], identity: u64, time: u64) -> Begun {
    let (identities, times) = set(table, identity);
    let time = time.max(OWNED + 1);
    for way in 0..WAYS {
        if own(identities, times, way, identity).is_some() {
            times[way].store(time, Ordering::Release); // F1
            return Begun::Replaced;
        }
    }
    for way in 0..WAYS {
        // F2: Acquire pairs with the Release store in `end`: the identity that is stored next comes behind that of the previous owner.
        if times[way].load(Ordering::Relaxed) == FREE
            && times[way].compare_exchange(FREE, OWNED, Ordering::Acquire, Ordering::Relaxed).is_ok()
        {
            identities[way].store(identity, Ordering::Relaxed);
            times[way].store(time, Ordering::Release); // F1
            return Begun::New;
        }
    }
    Begun::NoRoom
}

/// Ends the operation: the time at which it began.
pub(crate) fn end(table: &[AtomicU64], identity: u64) -> Option<u64> {
    let (identities, times) = set(table, identity);
    let (way, time) = (0..WAYS).find_map(|way| Some((way, own(identities, times, way, identity)?)))?;
    times[way].store(FREE, Ordering::Release); // F2
    Some(time)
}

/// The number of operations that have begun and not ended.
pub(crate) fn in_flight(table: &[AtomicU64]) -> u64 {
    let times = table.chunks_exact(2 * WAYS).flat_map(|set| &set[WAYS..]);
    times.filter(|time| time.load(Ordering::Relaxed) != FREE).count() as u64
}
