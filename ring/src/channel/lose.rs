//! Losing: the end of an event that the fast path has evaluated and not recorded, and that is immediately known to be lost.
//!
//! A program that records more than its sinks take loses many events in a row: the thread's ring is full, or no
//! ring is ready for the thread. They are counted here, without reading the clock or examining the packet. All other events take the full
//! path, which decides about them.

use super::account::{EventCounters, Loss};
use super::header::{Header, StreamCounters};
use super::open::FilterOutcome;
use super::record::{SoleSubscriber, size_of_record};
use crate::counter::LocalCounter;
use crate::field::Fields;
use crate::thread::ThreadSlot;
use std::mem::offset_of;

/// The offset, in the event's entry, of the counter of events lost because the ring is full.
const LOST: usize = offset_of!(EventCounters, lost) + Loss::RingFull as usize * size_of::<LocalCounter>();
/// The offset, in the header, of the counter of lost events of the main stream.
const DISCARDED: usize = offset_of!(Header, main_counters) + offset_of!(StreamCounters, discarded);

/// Continues with the values of an event that is not known to be lost, and leaves the section.
type Otherwise = extern "C" fn(*const (), &'static ThreadSlot);

impl SoleSubscriber {
    /// Counts an event that [`try_record`](Self::try_record) has not recorded as lost, if that is known, and leaves the section that `slot` has
    /// entered. Otherwise calls `otherwise` with the values and the slot, which leaves it.
    #[inline(always)]
    pub fn lose_or<V: Fields>(&self, values: &V, slot: &'static ThreadSlot, otherwise: Otherwise) {
        lose_or(std::ptr::from_ref(values).cast(), slot, self, size_of_record(values), otherwise);
    }

    /// Counts an event that [`try_record`](Self::try_record) has not recorded as lost, if that is known. Returns `false`, with nothing counted, if
    /// the full path must decide. The caller is in the same section.
    #[inline]
    pub fn lose<V: Fields>(&self, slot: &'static ThreadSlot, values: &V) -> bool {
        self.lose_record(slot, size_of_record(values))
    }

    /// The same for an event with a record of this size. Compiled once for all markers.
    #[inline(never)]
    fn lose_record(&self, slot: &'static ThreadSlot, size: usize) -> bool {
        self.lose_in_full_ring(slot, size).unwrap_or_else(|| self.lose_without_ring(slot))
    }

    /// The same for a thread whose ring was full; `None` if it was not.
    #[inline(always)]
    fn lose_in_full_ring(&self, slot: &'static ThreadSlot, size: usize) -> Option<bool> {
        // SAFETY: the caller's section keeps the list of subscribers, which keeps the channel, which owns the rings in its table. The channel has
        // allocated the id, and each of its rings has an entry for it.
        unsafe {
            let ring = &*self.ring_entry(slot).full()?;
            // One load of the address of the header, which has the consumer's position and a counter.
            let base = ring.base;
            let released = &base.cast::<Header>().as_ref().main_released;
            let is_lost =
                ring.main.is_still_full_for(size, released) && !self.channel_of_rings().overflow.has_permits();
            if is_lost {
                // As in `Ring::lost_in`, by instructions with the offsets of the counters.
                let event = base.add(self.entry());
                LocalCounter::increment_at::<{ offset_of!(EventCounters, fired) }>(event);
                failpoint!(LossBegun, ring.main.instance());
                LocalCounter::increment_at::<LOST>(event);
                failpoint!(LossNotDiscarded, ring.main.instance());
                LocalCounter::increment_at::<DISCARDED>(base);
            }
            Some(is_lost)
        }
    }

    /// The same for a thread that has no open ring, if it does not get one.
    #[cold]
    #[inline(never)]
    fn lose_without_ring(&self, slot: &'static ThreadSlot) -> bool {
        // SAFETY: as above.
        let Some(channel) = (unsafe { self.channel() }) else { return false };
        if !self.ring_entry(slot).is_empty() || channel.take_ring(slot).is_some() || channel.may_wait_for_ring() {
            return false;
        }
        if channel.records(slot) {
            channel.count_ringless(self.id(), FilterOutcome::Accepted);
        }
        true
    }
}

/// Compiled once for all markers. Needs no frame, and neither does its caller, a marker's function: both jump.
#[inline(never)]
extern "C" fn lose_or(
    values: *const (),
    slot: &'static ThreadSlot,
    sole: &SoleSubscriber,
    size: usize,
    otherwise: Otherwise,
) {
    match sole.lose_in_full_ring(slot, size) {
        Some(true) => slot.exit(),
        Some(false) => otherwise(values, slot),
        None => lose_without_ring_or(values, slot, sole, otherwise),
    }
}

#[cold]
#[inline(never)]
extern "C" fn lose_without_ring_or(
    values: *const (),
    slot: &'static ThreadSlot,
    sole: &SoleSubscriber,
    otherwise: Otherwise,
) {
    if sole.lose_without_ring(slot) {
        return slot.exit();
    }
    otherwise(values, slot);
}
