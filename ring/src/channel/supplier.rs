//! The supplier of spare rings: as many as threads appear, and few while none do.
//!
//! ```text
//!            thread appears: takes a spare ring          thread ends, and its packets are drained
//!   pool ──────────────────────────────────▶ owned ──────────────────────────────────▶ ended
//!    ▲ │                                                                                 │
//!    │ └── unused for a period ──▶ parked: header and counters, no memory for packets ◀──┤ unused for a period
//!    └──── recycled, unparked or made, in this order ◀───────────────────────────────────┘
//! ```
//!
//! Each round brings the pool to `wanted` rings: those that the channel is configured with; one for each thread that has started in this
//! period or the last and has none; and in a round in which threads took rings, or found none, twice as many as took one. What was unused
//! for a whole period is parked. A ring is parked and not removed because its streams and its counters are part of the trace.
//!
//! Threads whose rings are full take spare rings, too (see `overflow`). For them a round brings the pool to twice as many more as were taken
//! since the last one, within the limit of the overflow, and says how many they may take until the next.

use super::buffer::WAKE_AT;
use super::config::Policy;
use super::header::Layout;
use super::memory::RingRequest;
use super::open::OpenChannel;
use super::ring::Ring;
use super::supply::Round;
use crate::clock;
use crate::thread;
use std::io;
use std::ptr::null_mut;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

/// How many rings the pool has room for at least, unless the channel may have fewer.
const POOL_SIZE: usize = 2048;
/// With fewer spare rings, a thread that takes one wakes the supplier.
const FEW: usize = 2;
/// The number of rings that one round makes while the pool is filled for the first time, so that draining is not delayed for long.
const RINGS_PER_ROUND: usize = 2;
/// How long one round may make rings, for the same reason.
const LONGEST_ROUND: Duration = Duration::from_millis(10);
/// How often the threads of the process are counted while none takes a ring.
const COUNT_INTERVAL: Duration = Duration::from_millis(50);
/// How long rings stay unused before their memory is given back.
const PERIOD: Duration = Duration::from_secs(4);

impl OpenChannel {
    /// The number of entries that the pool of a channel needs.
    pub(super) fn pool_size(config: &super::Channel) -> usize {
        let [at_first, _] = config.first_rings();
        config.spare_rings().max(at_first).max(POOL_SIZE).clamp(1, config.max_rings)
    }

    /// Makes the rings that exist when the channel is opened. If there is no memory for those beyond the usual spares, that is no error.
    pub(super) fn supply_at_first(&self) -> io::Result<()> {
        let [at_first, needed] = self.config.first_rings();
        let mut rings = self.rings.lock().unwrap_or_else(PoisonError::into_inner);
        let mut round = self.supply.round.lock().unwrap_or_else(PoisonError::into_inner);
        let supplied = self.fill_pool(&mut rings, &mut round, at_first, None);
        round.was_filled = at_first >= self.config.spare_rings();
        self.leave(&rings);
        if rings.len() < needed { supplied } else { Ok(()) }
    }

    /// One round.
    pub(super) fn supply(&self) -> io::Result<()> {
        // Recycling closes packets, as `flush` does, and only one thread may do that at a time.
        let _closing = self.closing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut rings = self.rings.lock().unwrap_or_else(PoisonError::into_inner);
        let mut round = self.supply.round.lock().unwrap_or_else(PoisonError::into_inner);
        self.abandon_broken(&rings);
        self.ring_table.prepare();
        let count = self.pool.count();
        round.fewest_spare = round.fewest_spare.min(count);
        let wanted = self.demand(&rings, &mut round, count).min(self.pool.capacity());
        let missing = wanted.saturating_sub(count);
        let most = if round.was_filled { missing } else { missing.min(RINGS_PER_ROUND) };
        let deadline = Instant::now() + LONGEST_ROUND;
        let supplied = if most > 0 { self.fill_pool(&mut rings, &mut round, most, Some(deadline)) } else { Ok(()) };
        let left = self.pool.count();
        round.was_filled |= left >= wanted || left < count + most;
        let is_at_limit = left == 0 && rings.len() >= self.config.max_rings;
        self.supply.can_make.store(supplied.is_ok() && !is_at_limit, Ordering::Relaxed);
        let is_behind = left < wanted && supplied.is_ok() && Instant::now() >= deadline;
        self.supply.is_behind.store(is_behind, Ordering::Relaxed);
        if round.since.elapsed() >= PERIOD {
            self.park_unused(&rings, &mut round);
        }
        self.leave(&rings);
        supplied
    }

    /// Leaves what is in the pool to the threads until the next round.
    fn leave(&self, rings: &[Arc<Ring>]) {
        let left = self.pool.count();
        self.supply.left.store(left, Ordering::Relaxed);
        let waiting = Self::waiting(rings);
        // One is left to a new thread.
        self.overflow.permit(left.saturating_sub(1).min(self.room_of_overflow(waiting)), waiting > 0);
    }

    /// How many rings without an owner wait for the consumer.
    fn waiting(rings: &[Arc<Ring>]) -> usize {
        rings.iter().filter(|ring| ring.has_ended() && !ring.is_drained()).count()
    }

    /// How many more rings the overflow may have, of which so many are `waiting`.
    fn room_of_overflow(&self, waiting: usize) -> usize {
        (self.source.overflow_limit(self.config.overflow) / self.config.ring_size).saturating_sub(waiting)
    }

    /// How many rings the pool is to have after `count` of those that the last round left are still there.
    fn demand(&self, rings: &[Arc<Ring>], round: &mut Round, count: usize) -> usize {
        let ringless = self.ringless_discarded();
        let lost = ringless - std::mem::replace(&mut round.ringless, ringless);
        let overflowed = self.overflow.rings();
        let moved = (overflowed - std::mem::replace(&mut round.overflowed, overflowed)) as usize;
        let appeared = self.supply.left.load(Ordering::Relaxed).saturating_sub(count + moved);
        // Threads that fired for other channels only have no ring either, so the lost events are another bound.
        let without = if lost > 0 { thread::count_claimed(|slot| self.has_no_ring(slot)) } else { 0 };
        let seen = (2 * appeared).max(without.min(lost as usize));
        if seen > 0 || round.counted.elapsed() >= COUNT_INTERVAL {
            let owned = rings.iter().filter(|ring| ring.is_owned()).count();
            round.others = self.source.thread_count().map(|threads| threads.saturating_sub(owned));
            round.fewest_others = round.fewest_others.min(round.others.unwrap_or(0));
            round.counted = Instant::now();
        }
        let started = round.others.unwrap_or(0).saturating_sub(round.idle);
        let spares = self.config.spare_rings().max(1);
        round.wanted = round.wanted.max(spares + seen);
        let most = round.others.map_or(usize::MAX, |others| spares + others);
        let further = if moved > 0 { (2 * moved).min(self.room_of_overflow(Self::waiting(rings))) } else { 0 };
        round.wanted.max(spares + started).min(most) + further
    }

    /// Whether the supplier is to be woken after a thread has `taken` a ring from the pool, or found none: the last but one is taken, or half of
    /// those that the last round left.
    pub(super) fn is_supply_needed(&self, taken: bool) -> bool {
        let few = FEW.max(self.supply.left.load(Ordering::Relaxed) / 2);
        if taken { self.pool.count() < few } else { self.supply.can_make.load(Ordering::Relaxed) }
    }

    fn has_no_ring(&self, slot: usize) -> bool {
        self.ring_table.rings()[slot].load(Ordering::Relaxed).is_null()
    }

    /// Puts up to `wanted` rings into the pool.
    fn fill_pool(
        &self,
        rings: &mut Vec<Arc<Ring>>,
        round: &mut Round,
        mut wanted: usize,
        deadline: Option<Instant>,
    ) -> io::Result<()> {
        if self.config.policy != Policy::Overwrite {
            self.recycle(rings, round, &mut wanted, |ring| ring.main.waiting_percent() < WAKE_AT);
        }
        let made = self.make_rings(rings, round, &mut wanted, deadline);
        // The rings of ended threads keep what is in them as long as other rings can be had: under overwrite history, otherwise many packets that
        // have not been drained, behind which a new thread could record little.
        let mut needed = match self.config.policy {
            Policy::Overwrite => wanted,
            _ if self.pool.count() == 0 => wanted.min(1),
            _ => 0,
        };
        wanted -= needed;
        self.recycle(rings, round, &mut needed, |_| true);
        if wanted + needed > 0 { made } else { Ok(()) }
    }

    /// Puts up to `wanted` rings of ended threads into the pool, for which `is_fit` holds.
    fn recycle(&self, rings: &[Arc<Ring>], round: &mut Round, wanted: &mut usize, is_fit: impl Fn(&Ring) -> bool) {
        for ring in rings.iter().filter(|ring| ring.is_whole() && ring.has_ended() && is_fit(ring)) {
            if *wanted == 0 {
                return;
            }
            ring.recycle();
            *wanted -= usize::from(self.pool.put(Arc::as_ptr(ring)));
            round.unused_ended = round.unused_ended.saturating_sub(1);
            failpoint!(RingPooled, ring.buffers()[0].instance());
        }
    }

    /// Puts up to `wanted` rings into the pool that are parked or new, until the deadline.
    fn make_rings(
        &self,
        rings: &mut Vec<Arc<Ring>>,
        round: &mut Round,
        wanted: &mut usize,
        deadline: Option<Instant>,
    ) -> io::Result<()> {
        let is_late = || deadline.is_some_and(|deadline| Instant::now() >= deadline);
        for ring in rings.iter().filter(|ring| ring.is_whole() && ring.is_parked()) {
            if *wanted == 0 || is_late() {
                return Ok(());
            }
            ring.unpark()?;
            *wanted -= usize::from(self.pool.put(Arc::as_ptr(ring)));
        }
        let mut may_make = self.config.max_rings.saturating_sub(rings.iter().filter(|ring| ring.is_whole()).count());
        while *wanted > 0 && may_make > 0 && !is_late() {
            let ring = Arc::new(self.make_ring(rings.len() as u64, round)?);
            *wanted -= usize::from(self.pool.put(Arc::as_ptr(&ring)));
            rings.push(ring);
            self.ringless.count_rings(rings.len());
            may_make -= 1;
        }
        Ok(())
    }

    fn make_ring(&self, index: u64, round: &mut Round) -> io::Result<Ring> {
        let largest = if round.largest > 0 { round.largest } else { usize::MAX };
        let layouts: Vec<_> = self
            .config
            .ring_sizes()
            .filter(|size| *size <= largest)
            .map(|size| (size, Layout::of_ring(&self.config, size, self.max_events())))
            .collect();
        let sizes: Vec<_> = layouts.iter().map(|(_, layout)| layout.size).collect();
        let chosen = self.source.choose_size(&sizes);
        let fits = |(_, layout): &&(usize, Layout)| layout.size <= chosen;
        let Some((size, layout)) = layouts.iter().find(fits).or(layouts.last()).copied() else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let memory = self.source.ring_memory(RingRequest::new(self.name(), self.class, Some(index), layout.size))?;
        let ring = Ring::new(&self.config, self.owner(2 * index), layout, memory, self.wait_policy(), clock::now())?;
        if round.largest == 0 {
            round.largest = size;
        }
        Ok(ring.with_wake_word(Some(&self.wake_word).filter(|_| self.config.wakes_consumer())))
    }

    /// Parks what was unused for a period, beyond the usual spares, and begins the next period.
    fn park_unused(&self, rings: &[Arc<Ring>], round: &mut Round) {
        let spares = self.config.spare_rings().max(1);
        let unused = round.fewest_spare.saturating_sub(spares).min(self.pool.count());
        round.wanted -= unused.min(round.wanted.saturating_sub(spares));
        for _ in 0..unused {
            let Some(ring) = self.pool.take() else { break };
            // SAFETY: pointers in the pool are to rings of this channel, which live as long as it.
            if !unsafe { &*ring }.park() {
                self.pool.put(ring);
                break;
            }
        }
        let ended = || rings.iter().filter(|ring| ring.is_whole() && ring.has_ended());
        if self.config.policy != Policy::Overwrite {
            for ring in ended().take(round.unused_ended) {
                ring.park();
            }
        }
        (round.since, round.idle) = (Instant::now(), std::mem::replace(&mut round.fewest_others, usize::MAX));
        (round.fewest_spare, round.unused_ended) = (self.pool.count(), ended().count());
    }

    /// Abandons rings whose memory was lost: removes them from the pool, and makes their threads take another one at their next event.
    fn abandon_broken(&self, rings: &[Arc<Ring>]) {
        for ring in rings.iter().filter(|ring| !ring.is_whole()) {
            let broken = Arc::as_ptr(ring).cast_mut();
            self.pool.remove(broken);
            for entry in self.ring_table.rings() {
                // Relaxed, as for the whole table: a thread that finds null takes a ring from the pool (L2). A thread that is using the
                // old ring may go on, since the ring lives as long as the channel.
                let _ = entry.compare_exchange(broken, null_mut(), Ordering::Relaxed, Ordering::Relaxed);
            }
        }
    }

    /// How urgently [`maintain`](Self::maintain) is needed, in percent: the part of the spare rings that was taken since the last call, or 100
    /// if that had not the time to make all rings.
    pub fn spares_taken(&self) -> u32 {
        if !self.ring_table.is_attached() {
            return 0;
        }
        if self.supply.is_behind.load(Ordering::Relaxed) {
            return 100;
        }
        let left = self.supply.left.load(Ordering::Relaxed);
        let taken = left.saturating_sub(self.pool.count());
        (taken * 100 / left.max(1)) as u32
    }
}
