//! Determines the number of spare rings.
//!
//! Rings in which threads start: the number configured for the channel; one for each thread that has started in this period or the last one and has
//! no ring; and, in a round in which threads took rings, found none or wait for one, twice the number of threads that took one (four times for small rings), but at
//! most the number of threads without a ring. The small rings with which a channel starts are created regardless of the number of threads. Rings that
//! were unused for a complete period are no longer needed, except the small rings that the largest crowd of the last minute used at the same time.
//!
//! Large rings of a channel with small ones: the number configured, and twice the number of threads that continued in one since the last round.
//! For the overflow, twice the number taken for it, within its limit.

use super::super::header::Layout;
use super::super::open::OpenChannel;
use super::super::ring::Ring;
use super::super::supply::{FEW, Round};
use crate::thread;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Interval at which the threads of the process are counted while none takes a ring.
const COUNT_INTERVAL: Duration = Duration::from_millis(50);
/// Factor for the number of small rings, relative to the threads that took one since the last round: a crowd starts faster than rings are created.
const AHEAD: usize = 2;
/// Memory and maximum number of the small rings when recording begins, and at rest. With a recorder in another process there are fewer at first,
/// because it has a file open for each.
const SMALL_AT_FIRST: (usize, usize) = (2 << 20, 64);
const SMALL_FROM_OUTSIDE: (usize, usize) = (512 << 10, 16);
const SMALL_AT_REST: (usize, usize) = (256 << 10, 8);
/// The memory that the first small rings keep permanently: header and account, which are large in a program with many events.
const KEPT: usize = 512 << 10;

impl OpenChannel {
    /// Number of small rings when recording begins, including rings for the existing threads.
    pub(super) fn small_at_first(&self) -> usize {
        let least = self.config.rings_at_first().unwrap_or(0) + self.small_at_rest();
        let kept = Layout::of_small_ring(&self.config, self.max_events()).map_or(KEPT, |layout| layout.main);
        let is_own = self.config.rings_at_first().is_none();
        let most = self.small_within(if is_own { SMALL_AT_FIRST } else { SMALL_FROM_OUTSIDE }).min(KEPT / kept);
        most.max(least).min(self.small_rings.pool.capacity())
    }

    /// Number of small rings kept ready while no threads start.
    pub(super) fn small_at_rest(&self) -> usize {
        self.small_within(SMALL_AT_REST).max(self.config.spares_if_set().unwrap_or(0))
    }

    /// Number of large rings kept ready while no thread needs another one: a thread that has outgrown its small ring takes the first, which wakes the
    /// supplier; the next ones are for the overflow.
    pub(super) fn large_at_rest(&self, rings: &[Arc<Ring>]) -> usize {
        let has_small = self.small_rings.pool.capacity() > 0;
        let in_use = || rings.iter().any(|ring| !ring.is_small && ring.is_owned());
        if has_small && self.config.spares_if_set().is_none() && !in_use() {
            return 1;
        }
        self.config.spare_rings().max(1)
    }

    fn small_within(&self, (bytes, most): (usize, usize)) -> usize {
        let size = Layout::of_small_ring(&self.config, self.max_events()).map_or(bytes, |layout| layout.size);
        (bytes / size).clamp(FEW, most)
    }

    /// The numbers of small and large rings that the pools should have.
    pub(super) fn demand(&self, rings: &[Arc<Ring>], round: &mut Round) -> [usize; 2] {
        let overflowed = self.overflow.rings();
        let moved = (overflowed - std::mem::replace(&mut round.overflowed, overflowed)) as usize;
        let grown = self.grown.load(Ordering::Relaxed);
        let grown = grown - std::mem::replace(&mut round.grown, grown);
        let further = if moved > 0 { (2 * moved).min(self.room_of_overflow(Self::waiting(rings))) } else { 0 };
        let spares = self.large_at_rest(rings);
        if self.small_rings.pool.capacity() == 0 {
            let count = self.large_rings.pool.count();
            let taken = self.large_rings.left.load(Ordering::Relaxed).saturating_sub(count + moved);
            let [seen, started, most] = self.births(rings, round, taken);
            round.large.wanted = round.large.wanted.max(spares + seen);
            return [0, round.large.wanted.max(spares + started).min(most.saturating_add(spares)) + further];
        }
        let taken = self.small_rings.left.load(Ordering::Relaxed).saturating_sub(self.small_rings.pool.count());
        // If no small ring was ready, threads started in large ones.
        let large = self.large_rings.left.load(Ordering::Relaxed);
        let taken = taken + large.saturating_sub(self.large_rings.pool.count() + moved + grown);
        let [seen, started, most] = self.births(rings, round, taken);
        let small = self.small_at_rest();
        round.small.wanted = round.small.wanted.max(small + AHEAD * seen);
        let most = most.saturating_add(small).max(if round.is_first_period() { self.small_at_first() } else { 0 });
        let small = round.small.wanted.max(small + started).min(most);
        round.large.wanted = round.large.wanted.max(spares + 2 * grown);
        // At most the number of threads that can grow.
        let most = rings.iter().filter(|ring| ring.is_small && ring.is_owned()).count() + spares;
        [small, round.large.wanted.min(most) + further]
    }

    /// The numbers of threads that need rings: threads that took one, found none or wait for one, since the last round, of which `taken` took one; threads
    /// that have started; and all threads without one.
    fn births(&self, rings: &[Arc<Ring>], round: &mut Round, taken: usize) -> [usize; 3] {
        let ringless = self.ringless_discarded();
        let lost = ringless - std::mem::replace(&mut round.ringless, ringless);
        // Threads that fired only for other channels have no ring either, so the number of lost events is another bound.
        let without = if lost > 0 { thread::count_claimed(|slot| self.has_no_ring(slot)) } else { 0 };
        let waiting = self.supply.waiting.load(Ordering::Relaxed);
        let seen = (2 * taken).max(without.min(lost as usize)).max(waiting);
        if seen > 0 || round.counted.elapsed() >= COUNT_INTERVAL {
            let owned = rings.iter().filter(|ring| ring.is_owned()).count();
            round.others = self.source.thread_count().map(|threads| threads.saturating_sub(owned));
            round.fewest_others = round.fewest_others.min(round.others.unwrap_or(0));
            round.counted = Instant::now();
        }
        let started = round.others.unwrap_or(0).saturating_sub(round.idle);
        [seen, started, round.others.unwrap_or(usize::MAX)]
    }

    fn has_no_ring(&self, slot: usize) -> bool {
        self.ring_table.rings()[slot].is_empty()
    }
}
