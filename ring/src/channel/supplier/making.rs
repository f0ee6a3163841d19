//! Recycles, unparks and creates spare rings.

use super::super::buffer::WAKE_AT;
use super::super::config::Policy;
use super::super::header::Layout;
use super::super::memory::RingRequest;
use super::super::open::OpenChannel;
use super::super::ring::Ring;
use super::super::supply::{Round, Spares};
use crate::clock;
use std::io;
use std::sync::Arc;
use std::time::Instant;

impl OpenChannel {
    /// Puts up to `wanted` rings into a pool.
    pub(super) fn fill_pool(
        &self,
        spares: &Spares,
        rings: &mut Vec<Arc<Ring>>,
        round: &mut Round,
        mut wanted: usize,
        deadline: Option<Instant>,
    ) -> io::Result<()> {
        if self.config.policy != Policy::Overwrite {
            self.recycle(spares, rings, round, &mut wanted, |ring| ring.main.waiting_percent() < WAKE_AT);
        }
        let made = self.make_rings(spares, rings, round, &mut wanted, deadline);
        // Keep the contents of ended threads' rings as long as other rings are available: under overwrite they are history; otherwise they have many
        // undrained packets, which would leave a new thread little room.
        let mut needed = match self.config.policy {
            Policy::Overwrite => wanted,
            _ if spares.pool.count() == 0 => wanted.min(1),
            _ => 0,
        };
        wanted -= needed;
        self.recycle(spares, rings, round, &mut needed, |_| true);
        if wanted + needed > 0 { made } else { Ok(()) }
    }

    fn is_of(&self, ring: &Ring, spares: &Spares) -> bool {
        std::ptr::eq(self.spares_of(ring), spares)
    }

    /// Puts up to `wanted` rings of ended threads into the pool that `is_fit` accepts.
    fn recycle(
        &self,
        spares: &Spares,
        rings: &[Arc<Ring>],
        round: &mut Round,
        wanted: &mut usize,
        is_fit: impl Fn(&Ring) -> bool,
    ) {
        let ended = |ring: &&Arc<Ring>| self.is_of(ring, spares) && ring.is_whole() && ring.has_ended();
        for ring in rings.iter().filter(ended).filter(|ring| is_fit(ring)) {
            if *wanted == 0 {
                return;
            }
            ring.recycle();
            *wanted -= usize::from(spares.pool.add(Arc::as_ptr(ring)));
            let seen = if ring.is_small { &mut round.small } else { &mut round.large };
            seen.unused_ended = seen.unused_ended.saturating_sub(1);
            failpoint!(RingPooled, ring.buffers()[0].instance());
        }
    }

    /// Puts up to `wanted` parked or new rings into the pool, until the deadline.
    fn make_rings(
        &self,
        spares: &Spares,
        rings: &mut Vec<Arc<Ring>>,
        round: &mut Round,
        wanted: &mut usize,
        deadline: Option<Instant>,
    ) -> io::Result<()> {
        let is_late = || deadline.is_some_and(|deadline| Instant::now() >= deadline);
        let parked = |ring: &&Arc<Ring>| self.is_of(ring, spares) && ring.is_whole() && ring.is_parked();
        for ring in rings.iter().filter(parked) {
            if *wanted == 0 || is_late() {
                return Ok(());
            }
            ring.unpark()?;
            *wanted -= usize::from(spares.pool.add(Arc::as_ptr(ring)));
        }
        let is_small = std::ptr::eq(spares, &raw const self.small_rings);
        let mut may_make = self.rings_left(spares, rings);
        while *wanted > 0 && may_make > 0 && !is_late() {
            let index = rings.len() as u64;
            let ring = if is_small { self.make_small_ring(index) } else { self.make_ring(index, round) };
            let ring = Arc::new(ring?);
            *wanted -= usize::from(spares.pool.add(Arc::as_ptr(&ring)));
            rings.push(ring);
            self.ringless.count_rings(rings.len());
            may_make -= 1;
        }
        Ok(())
    }

    /// Number of further rings of this size that the channel may have. Rings with lost memory do not count.
    pub(super) fn rings_left(&self, spares: &Spares, rings: &[Arc<Ring>]) -> usize {
        let made = rings.iter().filter(|ring| self.is_of(ring, spares) && ring.is_whole()).count();
        self.config.max_rings.saturating_sub(made)
    }

    fn make_small_ring(&self, index: u64) -> io::Result<Ring> {
        let layout = Layout::of_small_ring(&self.config, self.max_events()).ok_or(io::ErrorKind::InvalidInput)?;
        self.ring_of(index, layout).map(Ring::small)
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
        let mut first = 0;
        loop {
            let chosen = self.source.choose_size(&sizes[first..]);
            first = sizes.iter().position(|size| *size <= chosen).unwrap_or(sizes.len() - 1);
            let (size, layout) = layouts[first];
            match self.ring_of(index, layout) {
                Ok(ring) => {
                    if round.largest == 0 {
                        round.largest = size;
                    }
                    return Ok(ring);
                }
                // Another process has taken the memory since the size was chosen.
                Err(error) if is_shortage(&error) && first + 1 < sizes.len() => first += 1,
                Err(error) => return Err(error),
            }
        }
    }

    fn ring_of(&self, index: u64, layout: Layout) -> io::Result<Ring> {
        let memory = self.source.ring_memory(RingRequest::new(self.name(), self.class, Some(index), layout.size))?;
        let ring = Ring::new(&self.config, self.owner(2 * index), layout, memory, self.wait_policy(), clock::now())?;
        Ok(ring.with_wake_word(Some(&self.wake_word).filter(|_| self.config.wakes_consumer())))
    }
}

/// Returns whether memory was refused of which a smaller ring needs less.
fn is_shortage(error: &io::Error) -> bool {
    use io::ErrorKind::{OutOfMemory, QuotaExceeded, StorageFull};
    matches!(error.kind(), OutOfMemory | QuotaExceeded | StorageFull)
}
