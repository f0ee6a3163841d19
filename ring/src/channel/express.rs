//! The short way from a marker with one subscriber to this thread's ring: what is looked up at every event on the long way is looked
//! up when the list of subscribers is made.

use super::account::EventCounters;
use super::open::{EventId, OpenChannel};
use super::ring::Ring;
use crate::clock::Moment;
use crate::field::Fields;
use crate::hint::chosen;
use crate::record::Head;
use crate::thread::ThreadSlot;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicPtr, Ordering};

/// A channel that is the only subscriber of a marker.
#[derive(Debug)]
pub struct Only {
    /// The rings of the threads, in the channel's table.
    rings: NonNull<[AtomicPtr<Ring>]>,
    id: EventId,
    /// Where the event's entry of the account is in a ring's memory.
    entry: usize,
}

// SAFETY: points to a table of atomics; see `new`.
unsafe impl Send for Only {}
// SAFETY: as above.
unsafe impl Sync for Only {}

impl Only {
    /// The caller keeps the channel for as long as this is used: it stands in the same list.
    pub fn new(channel: &OpenChannel, id: EventId) -> Self {
        Self { rings: NonNull::from(channel.attachment.rings()), id, entry: Ring::entry_of(id.get()) }
    }

    /// The way to a thread's ring; `None` if it has none yet.
    #[inline(always)]
    pub fn express(&self, slot: &'static ThreadSlot) -> Option<Express<'_>> {
        // SAFETY: the table lives as long as the channel, which the list keeps that this is in; the caller is inside a section, which
        // keeps the list. The table has a place for each slot. Rings live as long as the channel, too.
        let ring = unsafe { self.rings.as_ref().get_unchecked(slot.index()).load(Ordering::Relaxed).as_ref() }?;
        Some(Express { only: self, ring })
    }
}

/// Where an event goes.
#[derive(Clone, Copy, Debug)]
pub struct Express<'a> {
    only: &'a Only,
    ring: &'a Ring,
}

impl Express<'_> {
    /// Counts that it fired, and records it, if nothing stands in the way; else nothing is done.
    #[inline(always)]
    pub fn try_record<V: Fields>(&self, moment: Moment, values: &V) -> bool {
        let head = Head::new(self.only.id.get(), moment);
        // Looked up as early as that: it has the register from here on that led to it.
        let event = chosen(self.event());
        self.ring.try_record_outermost(event, head, values)
    }

    /// Counts that it fired, and records it, or counts why not. Whether it was recorded at once.
    #[inline(always)]
    pub fn record<V: Fields>(&self, moment: Moment, values: &V) -> bool {
        self.ring.record_outermost(self.only.id.get(), self.event(), moment, values)
    }

    /// The event's entry in the ring's account.
    #[inline(always)]
    fn event(&self) -> &EventCounters {
        // SAFETY: the channel has given the id, and each of its rings has an entry for it.
        unsafe { self.ring.event_at(self.only.entry) }
    }
}
