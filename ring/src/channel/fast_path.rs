//! The fast path from a marker with one subscriber to this thread's ring: what the full path looks up at every event is looked up
//! once, when the list of subscribers is made.

use super::open::{EventId, OpenChannel};
use super::ring::Ring;
use crate::clock;
use crate::field::Fields;
use crate::hint::opaque_ref;
use crate::record::Head;
use crate::thread::ThreadSlot;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicPtr, Ordering};

/// A channel that is the only subscriber of a marker.
#[derive(Debug)]
pub struct SoleSubscriber {
    /// The rings of the threads, in the channel's table.
    rings: NonNull<[AtomicPtr<Ring>]>,
    id: EventId,
    /// Where the event's entry of the account is in a ring's memory.
    entry: usize,
}

// SAFETY: points to a table of atomics; see `new`.
unsafe impl Send for SoleSubscriber {}
// SAFETY: as above.
unsafe impl Sync for SoleSubscriber {}

impl SoleSubscriber {
    /// The caller keeps the channel for as long as this is used: it stands in the same list.
    pub fn new(channel: &OpenChannel, id: EventId) -> Self {
        Self { rings: NonNull::from(channel.attachment.rings()), id, entry: Ring::entry_of(id.get()) }
    }

    /// Records an event of the calling thread that fires outside any other, in the section that `slot` has entered, if nothing stands in
    /// the way. Otherwise `false`, with nothing done that counts.
    ///
    /// The ring is looked up before the clock is read: the processor does it while it waits for the clock.
    #[inline(always)]
    pub fn try_record<V: Fields>(&self, slot: &'static ThreadSlot, values: &V) -> bool {
        // SAFETY: the table lives as long as the channel, which the list keeps that this is in; the caller is inside a section, which
        // keeps the list. The table has a place for each slot. Rings live as long as the channel, too.
        let ring = unsafe { self.rings.as_ref().get_unchecked(slot.index()).load(Ordering::Relaxed).as_ref() };
        let Some(ring) = ring else { return false };
        // SAFETY: inside a section.
        let Some(moment) = (unsafe { clock::fast_now() }) else { return false };
        let head = Head::new(self.id.get(), moment);
        // SAFETY: the channel has given the id, and each of its rings has an entry for it. Looked up as early as this: from here on it
        // has the register that led to it.
        let event = opaque_ref(unsafe { ring.event_at(self.entry) });
        ring.try_record_outermost(event, head, values)
    }
}
