//! The producers' side of a channel: the full path of an event into this thread's ring, or the next one, and the counts of events without a ring.

use super::account::Loss;
use super::buffer::{Buffer, WAKE_AT};
use super::config::Policy;
use super::open::{EventId, FilterOutcome, OpenChannel};
use super::ring::Ring;
use super::supply::{FEW, Spares};
use super::wait_policy::{End, wait_for_supplier};
use crate::clock;
use crate::context::{ContextValues, with_callers};
use crate::field::{Concat, Fields};
use crate::thread::ThreadSlot;
use std::sync::atomic::{AtomicBool, Ordering};

impl OpenChannel {
    #[inline(always)]
    fn ring(&self, slot: &'static ThreadSlot) -> Option<&Ring> {
        // Relaxed: this thread has stored the pointer itself.
        // SAFETY: pointers in the table are to rings of this channel, which live as long as it.
        self.ring_table.entry(slot).open().map_or_else(|| self.full_or_new_ring(slot), |ring| Some(unsafe { &*ring }))
    }

    /// The ring of a thread that has no open ring.
    #[cold]
    #[inline(never)]
    fn full_or_new_ring(&self, slot: &'static ThreadSlot) -> Option<&Ring> {
        let entry = self.ring_table.entry(slot);
        let Some(ring) = entry.ring() else { return self.take_ring(slot) };
        // SAFETY: as above.
        let ring = unsafe { ring.as_ref() };
        if !ring.main.is_still_full() {
            entry.set_full(ring, false);
        }
        Some(ring)
    }

    /// Returns whether the channel records events of this thread.
    pub(super) fn records(&self, slot: &'static ThreadSlot) -> bool {
        slot.is_recorded_by(self.number)
    }

    /// Takes a ring for a thread without one.
    pub(super) fn take_ring(&self, slot: &'static ThreadSlot) -> Option<&Ring> {
        if !self.ring_table.is_attached() || !self.records(slot) {
            return None;
        }
        let ring = self.take_first()?;
        ring.own(slot.tid());
        match self.ring_table.entry(slot).put(ring) {
            None => Some(ring),
            Some(by_handler) => {
                // A signal handler has taken a ring for this thread in between; use that one.
                self.leave_ring(ring);
                // SAFETY: as above.
                Some(unsafe { by_handler.as_ref() })
            }
        }
    }

    /// Takes the first ring of a thread: a small one, if the channel has small rings and one is ready.
    fn take_first(&self) -> Option<&Ring> {
        // If the pool is empty, the second event wakes the supplier: events without a ring come in sequence.
        let can_make = &self.supply.can_make;
        let small = if self.small_rings.pool.count() > 0 { self.take_spare(&self.small_rings, can_make) } else { None };
        small.or_else(|| self.take_spare(&self.large_rings, can_make))
    }

    /// Takes one of these rings out of its pool. Wakes the supplier if few rings are left; or if none is, and `can_make` says that it can create one.
    fn take_spare(&self, spares: &Spares, can_make: &AtomicBool) -> Option<&Ring> {
        let taken = spares.pool.take();
        let is_needed = if taken.is_some() { spares.are_few() } else { can_make.load(Ordering::Relaxed) };
        if is_needed && self.config.wakes_for_rings {
            self.supply_wake_word.wake();
        }
        // SAFETY: pointers in the pool are to rings of this channel, which live as long as it.
        taken.map(|taken| unsafe { &*taken })
    }

    /// Returns whether an event of a thread without a ring may wait for one.
    pub(super) fn may_wait_for_ring(&self) -> bool {
        self.config.policy == Policy::Wait
    }

    /// Waits until the supplier has a ring for an event that is to be recorded, under [`Policy::Wait`].
    #[cold]
    #[inline(never)]
    fn wait_for_ring(&self, slot: &'static ThreadSlot) -> Option<&Ring> {
        let max_wait = self.config.max_wait()?;
        if self.supply.is_late.load(Ordering::Relaxed) {
            return None;
        }
        let mut taken = None;
        self.supply.waiting.fetch_add(1, Ordering::Relaxed);
        let (waited, end) = wait_for_supplier(max_wait, || {
            // A signal handler may have taken a ring for this thread.
            // SAFETY: pointers in the table are to rings of this channel, which live as long as it.
            let own = self.ring_table.entry(slot).ring().map(|ring| unsafe { ring.as_ref() });
            taken = own.or_else(|| self.take_ring(slot));
            if taken.is_some() {
                return Some(End::Ready);
            }
            let can_come = self.ring_table.is_attached()
                && self.consumers.is_present()
                && self.supply.can_make.load(Ordering::Relaxed);
            (!can_come).then_some(End::GivenUp)
        });
        self.supply.waiting.fetch_sub(1, Ordering::Relaxed);
        if end == End::TimedOut {
            self.supply.is_late.store(true, Ordering::Relaxed);
        }
        match taken {
            Some(ring) => ring.main.counters().count_wait(waited),
            None if self.ring_table.is_attached() => self.ringless.header().main_counters.count_shared_wait(waited),
            None => {}
        }
        taken
    }

    /// Handles an event of the calling thread: counts that it fired, calls `filter`, and records the event or counts the reason for not doing so.
    #[inline(always)]
    pub fn serve<V: Fields>(
        &self,
        slot: &'static ThreadSlot,
        id: EventId,
        time: u64,
        values: &V,
        filter: impl FnOnce() -> FilterOutcome,
    ) {
        let Some(ring) = self.ring(slot) else {
            // Checked before the filter runs, because a rate limit would count the event.
            if self.records(slot) {
                self.serve_without_ring(slot, id, values, filter());
            }
            return;
        };
        let event = ring.event(id.0);
        event.fired.increment();
        match filter() {
            FilterOutcome::Accepted => {
                if !ring.record(event, id.0, time, values) {
                    self.record_in_next_ring(slot, ring, id, time, values);
                }
            }
            FilterOutcome::Refused => event.filtered.increment(),
            FilterOutcome::Suppressed => event.suppressed.increment(),
            FilterOutcome::Panicked => ring.lost(id.0, Loss::Panicked),
        }
    }

    /// Handles an event of a thread without a ring: it waits for one if it is to be recorded and the policy allows that, and counts as without a ring
    /// otherwise.
    #[cold]
    fn serve_without_ring<V: Fields>(
        &self,
        slot: &'static ThreadSlot,
        id: EventId,
        values: &V,
        outcome: FilterOutcome,
    ) {
        let ring = (outcome == FilterOutcome::Accepted).then(|| self.wait_for_ring(slot)).flatten();
        let Some(ring) = ring else { return self.count_ringless(id, outcome) };
        let event = ring.event(id.0);
        event.fired.increment();
        // Not the time of the event's beginning: readers count on it that a thread's events are not older than what was drained before.
        let now = values.time().unwrap_or_else(clock::now);
        if !ring.record(event, id.0, now, values) {
            self.record_in_next_ring(slot, ring, id, now, values);
        }
    }

    /// Number of rings that threads have continued in so far, because their own were full.
    pub fn overflowed(&self) -> u64 {
        self.overflow.rings()
    }

    /// Returns whether rings without an owner waited for the consumer at the last [`maintain`](Self::maintain): once one has been drained, the next
    /// call makes it available again.
    pub fn overflow_waits(&self) -> bool {
        self.overflow.is_waiting()
    }

    /// The ring in which the thread of `slot` continues with the event `id`, which fired and does not fit into its ring `full`; `None` if it cannot.
    #[cold]
    #[inline(never)]
    pub(super) fn next_ring(&self, slot: &'static ThreadSlot, full: &Ring, id: EventId) -> Option<&Ring> {
        if !slot.may_change_ring() || !(full.is_small || self.overflow.take_permit()) {
            return None;
        }
        let next = self.take_spare(&self.large_rings, &self.supply.can_make_large)?;
        next.own(slot.tid());
        next.main.follow(&full.main);
        if !self.ring_table.entry(slot).replace(full, next) {
            // The supplier has abandoned the ring, because its memory was lost.
            self.leave_ring(next);
            return None;
        }
        next.event(id.get()).fired.increment();
        failpoint!(FiredTwice, full.main.instance());
        full.event(id.get()).fired.take_back();
        if full.is_small {
            self.grown.fetch_add(1, Ordering::Relaxed);
        } else {
            self.overflow.count();
        }
        self.leave_ring(full);
        Some(next)
    }

    /// Handles an event whose ring is full.
    #[cold]
    #[inline(never)]
    fn record_in_next_ring<V: Fields>(
        &self,
        slot: &'static ThreadSlot,
        full: &Ring,
        id: EventId,
        time: u64,
        values: &V,
    ) {
        let (ring, is_done) = match self.next_ring(slot, full, id) {
            Some(next) => (next, next.record(next.event(id.0), id.0, time, values)),
            None => (full, full.is_small && full.record_staying(id.0, time, values)),
        };
        if !is_done {
            ring.lost(id.0, Loss::RingFull);
            if ring.main.is_still_full() {
                self.ring_table.entry(slot).set_full(ring, true);
            }
        }
    }

    /// Returns whether the records begin with contexts.
    pub fn has_contexts(&self) -> bool {
        !self.config.contexts.is_empty()
    }

    /// The same as `serve`, with the outcome of the filter known, for a channel with contexts.
    pub fn serve_with_contexts<V: Fields>(
        &self,
        slot: &'static ThreadSlot,
        id: EventId,
        time: u64,
        values: &V,
        outcome: FilterOutcome,
    ) {
        if outcome != FilterOutcome::Accepted {
            return self.serve(slot, id, time, &(), || outcome);
        }
        with_callers(self.config.contexts, slot, |callers| {
            let contexts = ContextValues::now(self.config.contexts, self.process, slot, callers);
            self.serve(slot, id, time, &Concat(contexts, *values), || outcome);
        });
    }

    /// Handles an event with a field expression that panicked.
    pub fn panicked(&self, slot: &'static ThreadSlot, id: EventId) {
        self.serve(slot, id, 0, &(), || FilterOutcome::Panicked);
    }

    /// Counts an event of a thread without a ring.
    #[cold]
    #[inline(never)]
    pub(super) fn count_ringless(&self, id: EventId, outcome: FilterOutcome) {
        let attached = self.ring_table.is_attached();
        let row = if attached { self.ringless.account() } else { &*self.forked };
        let event = &row[id.0 as usize];
        event.fired.add_shared(1);
        let reason = match outcome {
            FilterOutcome::Refused => return event.filtered.add_shared(1),
            FilterOutcome::Suppressed => return event.suppressed.add_shared(1),
            FilterOutcome::Panicked => Loss::Panicked,
            FilterOutcome::Accepted if attached => Loss::NoRing,
            FilterOutcome::Accepted => Loss::NotAttached,
        };
        failpoint!(LossBegun, super::open::RINGLESS_INSTANCE);
        event.lost(reason).add_shared(1);
        failpoint!(LossNotDiscarded, super::open::RINGLESS_INSTANCE);
        if attached {
            self.ringless.header().main_counters.discarded.add_shared(1);
        }
    }

    /// Ends the thread of `slot`: its ring becomes available to another thread.
    pub(super) fn thread_exits(&self, slot: &'static ThreadSlot) {
        if let Some(ring) = self.ring_table.entry(slot).take() {
            // SAFETY: pointers in the table are to rings of this channel, which live as long as it.
            self.leave_ring(unsafe { ring.as_ref() });
        }
    }

    /// Releases `ring`: its owner, the calling thread, does not use it any more. The next thread can take it immediately, drained or not, unless it
    /// has little room, or history that is kept while other rings are available. Called inside a section, so that `finish`, which closes the packets
    /// of all rings after a grace period, does not do so meanwhile: this thread sees that the channel is finished, or the grace period waits for it
    /// (G1, G2).
    fn leave_ring(&self, ring: &Ring) {
        if self.takes_no_more() {
            return ring.end();
        }
        let pool = &self.spares_of(ring).pool;
        let keeps_history = self.config.policy == Policy::Overwrite && pool.count() >= FEW;
        if !keeps_history && ring.close_for_next_owner() {
            ring.main.wake_if_needed();
            // Check the memory after the accesses above, which may have found it truncated. If that is detected later, the next round of
            // the supplier takes the ring out of the pool.
            if self.has_room(ring) && ring.is_whole() {
                ring.hand_on();
                let is_put = pool.put(ring);
                failpoint!(HandOnPooled, ring.main.instance());
                if is_put {
                    return;
                }
            }
        }
        ring.end();
    }

    /// Returns whether the ring, which has no open packet, has room for another thread and for its signal handlers.
    fn has_room(&self, ring: &Ring) -> bool {
        if self.config.policy == Policy::Overwrite {
            return true;
        }
        // One free packet in a small ring is enough to start.
        let is_half_free = || ring.is_small || ring.main.waiting_percent() < WAKE_AT;
        ring.buffers().into_iter().all(Buffer::has_free_packet) && is_half_free()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channel::{AnonymousMemory, Channel};
    use crate::thread;
    use std::time::Duration;

    /// Otherwise the next thread would lose the events of its signal handlers.
    #[test]
    fn a_ring_without_room_for_signal_handlers_is_left_to_the_drain() {
        for config in [Channel::default(), Channel::discard(1 << 16), Channel::overwrite(1 << 16)] {
            let keeps = config.policy() == Policy::Overwrite;
            let channel =
                OpenChannel::open(config.at_first(1), [1; 16], 0, 1, Box::new(AnonymousMemory)).expect("memory");
            let (slot, id) = (thread::current().expect("a slot"), channel.add_event().expect("an id"));
            let fire = || channel.serve(slot, id, 0, &(1_u64, ()), || FilterOutcome::Accepted);
            for is_full in [false, true] {
                fire();
                let ring = channel.ring(slot).expect("a spare one");
                ring.main.interrupted(|| (0..if is_full { 10_000 } else { 1 }).for_each(|_| fire()));
                channel.thread_exits(slot);
                assert_eq!(ring.has_ended(), is_full && !keeps, "{:?}, {is_full}", channel.config());
            }
            channel.close();
        }
    }

    /// A thread that finds no ring waits for the supplier, which serves it at once, unless the policy is another one.
    #[test]
    fn a_thread_without_a_ring_waits_for_one_under_the_policy_wait() {
        for (config, lost) in [(Channel::wait(1 << 16, Duration::from_secs(10)), 0), (Channel::discard(1 << 16), 1)] {
            let config = config.at_first(1).spares(1);
            let channel = OpenChannel::open(config, [1; 16], 0, 1, Box::new(AnonymousMemory)).expect("memory");
            let consumer = channel.register_consumer();
            let id = channel.add_event().expect("an id");
            let fire = || {
                thread::section(thread::EventOrigin::from_site(None), |slot| {
                    channel.serve(slot, id, 0, &(1_u64, ()), || FilterOutcome::Accepted);
                })
            };
            fire().expect("a slot, and the only ring");
            // As if threads had taken all rings of the last round before it was over.
            channel.large_rings.left.store(0, Ordering::Relaxed);
            // No other test waits for a grace period, which would end a wait of 50 ms.
            let locked = crate::update::lock();
            channel.supply_wake_word.announce();
            std::thread::scope(|scope| {
                let other = scope.spawn(fire);
                assert!(channel.supply_wake_word.sleep(Duration::from_secs(60)), "the other thread has found no ring");
                while !other.is_finished() {
                    channel.supply_wake_word.announce();
                    channel.supply_spares().expect("memory");
                    channel.supply_wake_word.sleep(Duration::from_millis(10));
                }
                other.join().expect("no panic").expect("a slot");
            });
            drop(locked);
            let account = channel.account();
            assert_eq!((account.events[0].fired, account.events[0].total_lost()), (2, lost), "{:?}", channel.config());
            drop(consumer);
            channel.close();
        }
    }

    /// Without a supplier: only an event that is to be recorded waits, once until the supplier's next round, and the wait is in the account.
    #[test]
    fn a_wait_for_a_ring_is_bounded_and_counted() {
        let config = Channel::wait(1 << 16, Duration::from_millis(1)).at_first(1).spares(1);
        let channel = OpenChannel::open(config, [1; 16], 0, 1, Box::new(AnonymousMemory)).expect("memory");
        let (consumer, id) = (channel.register_consumer(), channel.add_event().expect("an id"));
        let fire = |outcome| {
            let served = thread::section(thread::EventOrigin::from_site(None), |slot| {
                channel.serve(slot, id, 0, &(1_u64, ()), || outcome);
            });
            served.expect("a slot");
        };
        let waits = || channel.account().streams.iter().map(|stream| stream.waited).sum::<u64>();
        fire(FilterOutcome::Accepted);
        let other = |outcomes: &[FilterOutcome]| {
            std::thread::scope(|scope| {
                let fires = scope.spawn(|| outcomes.iter().copied().for_each(fire));
                fires.join().expect("no panic");
            });
        };
        other(&[FilterOutcome::Refused]);
        assert_eq!(waits(), 0);
        other(&[FilterOutcome::Accepted, FilterOutcome::Accepted]);
        assert_eq!(waits(), 1);
        channel.supply().expect("memory");
        other(&[FilterOutcome::Accepted]);
        let event = &channel.account().events[0];
        assert_eq!((event.fired, event.filtered, event.recorded, event.total_lost()), (5, 1, 2, 2));
        drop(consumer);
        channel.close();
    }

    /// The next event looks for a ring again, or for room, whatever the state of the full ring.
    #[test]
    fn a_full_ring_is_marked_as_such_until_it_has_room_or_is_replaced() {
        let config = Channel::discard(1 << 13).packets(4).spares(2).max_rings(2).overflow(0);
        let channel = OpenChannel::open(config, [1; 16], 0, 1, Box::new(AnonymousMemory)).expect("memory");
        let (slot, id) = (thread::current().expect("a slot"), channel.add_event().expect("an id"));
        let fire = |times: usize| {
            (0..times).for_each(|_| channel.serve(slot, id, 0, &(1_u64, ()), || FilterOutcome::Accepted));
        };
        let entry = channel.ring_table.entry(slot);
        let states = || [entry.open(), entry.full()].map(|ring| ring.is_some());
        fire(1000);
        assert_eq!(states(), [false, true]);
        channel.drain(|_| {});
        fire(1);
        assert_eq!(states(), [true, false], "the consumer has released packets");
        fire(1000);
        let full = entry.full().expect("full again");
        // SAFETY: rings live as long as the channel.
        entry.remove(unsafe { &*full });
        assert_eq!(states(), [false; 2], "the memory of the ring was lost");
        fire(1);
        assert_eq!((states(), entry.open() == Some(full)), ([true, false], false), "the thread has taken another ring");
        fire(1000);
        channel.thread_exits(slot);
        assert!(entry.is_empty());
        channel.close();
    }
}
