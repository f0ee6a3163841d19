//! The fast path from a marker with one subscriber to this thread's ring: what the full path looks up at every event is looked up once, when
//! the list of subscribers is made.

use super::open::{EventId, OpenChannel};
use super::ring::Ring;
use crate::clock;
use crate::field::Fields;
use crate::hint::opaque_ref;
use crate::record::Head;
use crate::thread::ThreadSlot;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicPtr, Ordering};

/// The lookups for a channel that is the only subscriber of a marker.
#[derive(Debug)]
pub struct SoleSubscriber {
    /// The rings of the threads, in the channel's table.
    rings: NonNull<[AtomicPtr<Ring>]>,
    id: EventId,
    /// The offset of the event's entry of the account in a ring's memory.
    entry: usize,
}

// SAFETY: points to a table of atomics, which lives as long as the channel; see `new`.
unsafe impl Send for SoleSubscriber {}
// SAFETY: as above.
unsafe impl Sync for SoleSubscriber {}

impl SoleSubscriber {
    /// The caller keeps the channel alive for as long as this is used, by an entry in the same list of subscribers.
    pub fn new(channel: &OpenChannel, id: EventId) -> Self {
        Self { rings: NonNull::from(channel.ring_table.rings()), id, entry: Ring::entry_of(id.get()) }
    }

    /// Records an event of the calling thread that is not nested in another one, in the section that `slot` has entered. `false`, with nothing
    /// committed or counted, if the event needs the full path.
    ///
    /// The ring is looked up before the clock is read: the processor does it while it waits for the clock.
    #[inline(always)]
    pub fn try_record<V: Fields>(&self, slot: &'static ThreadSlot, values: &V) -> bool {
        // SAFETY: the caller's section keeps the list of subscribers, which keeps the channel, which owns the table and the rings. The
        // table has an entry for each slot index.
        let ring = unsafe { self.rings.as_ref().get_unchecked(slot.index()).load(Ordering::Relaxed).as_ref() };
        let Some(ring) = ring else { return false };
        // SAFETY: the caller is inside a section.
        let Some(now) = (unsafe { clock::fast_now() }) else { return false };
        let head = Head::new(self.id.get(), now);
        // Computed this early because it can then take over the register of the offset.
        // SAFETY: the channel has allocated the id, and each of its rings has an entry for it.
        let event = opaque_ref(unsafe { ring.event_at(self.entry) });
        ring.try_record(event, head, values)
    }
}
