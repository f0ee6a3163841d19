//! The supplier of spare rings: as many as needed while threads start, and few otherwise.
//!
//! ```text
//!                    ┌───────── thread ends, or goes on in another ring: it hands the ring on ─────────┐
//!            thread appears: takes a spare ring          thread ends in a ring that has no room left    │
//!   pool ──────────────────────────────────▶ owned ──────────────────────────────────▶ ended            │
//!    ▲ ▲ │                                    └───────────────────────────────────────────│─────────────┤
//!    │ └─│──────────────────────────────────────────────────────────────────────────────── │ ────────────┘
//!    │   └── unused for a period ──▶ parked: header and counters, no memory for packets ◀──┤ unused for a period
//!    └──── recycled, unparked or made, in this order ◀─────────────────────────────────────┘
//! ```
//!
//! There are rings of two sizes, each with a pool. A thread starts in a *small* ring, and continues in a *large* one when it has filled half of the
//! small one, or has a record that does not fit. A channel whose rings have a given size, or keep their history, has only large rings. There may be
//! as many small rings as large ones: the small rings of a crowd of threads, which are parked for the next crowd, leave each of its threads a large
//! ring.
//!
//! Each round brings the pools to the size determined by `demand`, using `making`. A ring is parked, not removed, because its streams and its
//! counters are part of the trace.
//!
//! Threads whose rings are full also take spare rings (see `overflow`). Each round determines how many they may take until the next.

mod demand;
mod making;

use super::config::Policy;
use super::open::OpenChannel;
use super::ring::Ring;
use super::supply::{PERIOD, RingHistory, Round, Spares};
use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

/// Minimum capacity of the pool, unless the channel may have fewer rings.
const POOL_SIZE: usize = 2048;
/// Number of large rings that one round creates while the pool is filled for the first time, so that draining is not delayed for long.
const RINGS_PER_ROUND: usize = 2;
/// Maximum time for which one round may create rings, for the same reason.
const LONGEST_ROUND: Duration = Duration::from_millis(10);

impl OpenChannel {
    /// Number of entries that the pool of a channel needs.
    pub(super) fn pool_size(config: &super::Channel) -> usize {
        let [at_first, _] = config.first_rings();
        config.spare_rings().max(at_first).max(POOL_SIZE).clamp(1, config.max_rings)
    }

    /// Creates the rings that exist when the channel is opened. A lack of memory for rings in excess of the usual spares is not an error.
    pub(super) fn supply_at_first(&self) -> io::Result<()> {
        let [at_first, needed] = self.config.first_rings();
        let mut rings = self.rings.lock().unwrap_or_else(PoisonError::into_inner);
        let mut round = self.supply.round.lock().unwrap_or_else(PoisonError::into_inner);
        // The first ring has the largest packets. If memory is scarce, many small rings are worth more than further large ones.
        let mut supplied = self.fill_pool(&self.large_rings, &mut rings, &mut round, needed, None);
        let has_needed = self.large_rings.pool.count() >= needed;
        if has_needed {
            // The next round creates the other half. Threads of the session started before it then find room in a process with little memory.
            round.small.wanted = self.small_at_first();
            let half = round.small.wanted.div_ceil(2);
            supplied = self
                .fill_pool(&self.small_rings, &mut rings, &mut round, half, None)
                .and_then(|()| self.fill_pool(&self.large_rings, &mut rings, &mut round, at_first - needed, None));
        }
        round.was_filled = at_first >= self.config.spare_rings();
        self.leave(&rings);
        if has_needed { Ok(()) } else { supplied }
    }

    /// Executes one round.
    pub(super) fn supply(&self) -> io::Result<()> {
        // Recycling closes packets, as `flush` does, and only one thread may do that at a time.
        let _closing = self.closing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut rings = self.rings.lock().unwrap_or_else(PoisonError::into_inner);
        let mut round = self.supply.round.lock().unwrap_or_else(PoisonError::into_inner);
        self.abandon_broken(&rings);
        self.ring_table.prepare();
        let [small, large] = self.demand(&rings, &mut round);
        let deadline = Instant::now() + LONGEST_ROUND;
        let mut supplied = Ok(());
        let (mut is_behind, mut can_make, mut can_make_large) = (false, false, false);
        for (spares, wanted) in [(&self.small_rings, small), (&self.large_rings, large)] {
            let is_large = std::ptr::eq(spares, &raw const self.large_rings);
            let wanted = wanted.min(spares.pool.capacity());
            let count = spares.pool.count();
            let missing = wanted.saturating_sub(count);
            let most = if round.was_filled || !is_large { missing } else { missing.min(RINGS_PER_ROUND) };
            let filled =
                if most > 0 { self.fill_pool(spares, &mut rings, &mut round, most, Some(deadline)) } else { Ok(()) };
            let left = spares.pool.count();
            if is_large {
                round.was_filled |= left >= wanted || left < count + most;
            }
            let is_at_limit = left == 0 && self.rings_left(spares, &rings) == 0;
            let can_make_these = spares.pool.capacity() > 0 && filled.is_ok() && !is_at_limit;
            can_make |= can_make_these;
            can_make_large |= is_large && can_make_these;
            is_behind |= left < wanted && filled.is_ok() && Instant::now() >= deadline;
            supplied = supplied.and(filled);
        }
        self.supply.is_behind.store(is_behind, Ordering::Relaxed);
        self.supply.can_make.store(can_make, Ordering::Relaxed);
        self.supply.is_late.store(false, Ordering::Relaxed);
        self.supply.can_make_large.store(can_make_large, Ordering::Relaxed);
        if round.since.elapsed() >= PERIOD {
            self.park_unused(&rings, &mut round);
        }
        self.leave(&rings);
        supplied
    }

    /// Leaves the rings in the pools to the threads until the next round.
    fn leave(&self, rings: &[Arc<Ring>]) {
        for spares in [&self.small_rings, &self.large_rings] {
            spares.left.store(spares.pool.count(), Ordering::Relaxed);
        }
        let left = self.large_rings.left.load(Ordering::Relaxed);
        let waiting = Self::waiting(rings);
        // One ring is left for a new thread.
        self.overflow.permit(left.saturating_sub(1).min(self.room_of_overflow(waiting)), waiting > 0);
    }

    /// Number of large rings without an owner that wait for the consumer.
    fn waiting(rings: &[Arc<Ring>]) -> usize {
        rings.iter().filter(|ring| !ring.is_small && ring.has_ended() && !ring.is_drained()).count()
    }

    /// Number of further rings that the overflow may have, given that `waiting` rings are in use.
    fn room_of_overflow(&self, waiting: usize) -> usize {
        (self.source.overflow_limit(self.config.overflow) / self.config.ring_size).saturating_sub(waiting)
    }

    /// The spare rings of the same size as this ring.
    pub(super) const fn spares_of(&self, ring: &Ring) -> &Spares {
        if ring.is_small { &self.small_rings } else { &self.large_rings }
    }

    /// Parks rings that were unused for a period, except those to be kept ready, and begins the next period.
    fn park_unused(&self, rings: &[Arc<Ring>], round: &mut Round) {
        let spares = self.large_at_rest(rings);
        let unused = self.large_rings.pool.lowest().saturating_sub(spares).min(self.large_rings.pool.count());
        Self::park(&self.large_rings, &mut round.large, unused, spares);
        self.park_ended(rings, &mut round.large, |ring| !ring.is_small);
        if self.small_rings.pool.capacity() > 0 {
            // Small rings of the largest crowd are kept for longer: they take little memory, and the threads of the next crowd cannot wait.
            let lowest = self.small_rings.pool.lowest();
            let owned = rings.iter().filter(|ring| ring.is_small && ring.is_owned()).count();
            let all = owned + self.small_rings.pool.count();
            let spares = self.small_at_rest();
            let kept = round.small.remember(all.saturating_sub(lowest)) + spares;
            let unused = all.saturating_sub(kept).min(lowest.saturating_sub(spares));
            Self::park(&self.small_rings, &mut round.small, unused, spares);
            self.park_ended(rings, &mut round.small, |ring| ring.is_small);
        }
        (round.since, round.idle) = (Instant::now(), std::mem::replace(&mut round.fewest_others, usize::MAX));
    }

    /// Parks `unused` spare rings; the channel should keep `rest`.
    fn park(spares: &Spares, seen: &mut RingHistory, unused: usize, rest: usize) {
        seen.wanted -= unused.min(seen.wanted.saturating_sub(rest));
        for _ in 0..unused {
            let Some(ring) = spares.pool.take() else { break };
            // SAFETY: pointers in the pool are to rings of this channel, which live as long as it.
            if !unsafe { &*ring }.park() {
                spares.pool.put(ring);
                break;
            }
        }
        spares.pool.lowest();
    }

    /// Parks the rings that had ended when the period began, if `is_of` accepts them.
    fn park_ended(&self, rings: &[Arc<Ring>], seen: &mut RingHistory, is_of: fn(&Ring) -> bool) {
        let ended = || rings.iter().filter(|ring| is_of(ring) && ring.is_whole() && ring.has_ended());
        if self.config.policy != Policy::Overwrite {
            for ring in ended().take(seen.unused_ended) {
                ring.park();
            }
        }
        seen.unused_ended = ended().count();
    }

    /// Abandons rings with lost memory: removes them from the pool, and makes their threads take another one at their next event.
    fn abandon_broken(&self, rings: &[Arc<Ring>]) {
        for ring in rings.iter().filter(|ring| !ring.is_whole()) {
            self.spares_of(ring).pool.remove(Arc::as_ptr(ring));
            // A thread that finds its entry empty takes a ring from the pool (L2). A thread that is using the old ring may continue, because the ring
            // lives as long as the channel.
            self.ring_table.rings().iter().for_each(|entry| entry.remove(ring));
        }
    }

    /// The urgency of [`maintain`](Self::maintain) in percent: the part of the spare rings taken since the last call, or 100
    /// if that call had no time to create all rings, or if threads wait for rings.
    pub fn spares_taken(&self) -> u32 {
        if !self.ring_table.is_attached() {
            return 0;
        }
        let is_awaited =
            || self.supply.waiting.load(Ordering::Relaxed) > 0 && self.supply.can_make.load(Ordering::Relaxed);
        if self.supply.is_behind.load(Ordering::Relaxed) || is_awaited() {
            return 100;
        }
        let taken = |spares: &Spares| {
            let left = spares.left.load(Ordering::Relaxed);
            (left.saturating_sub(spares.pool.count()) * 100 / left.max(1)) as u32
        };
        taken(&self.small_rings).max(taken(&self.large_rings))
    }
}
