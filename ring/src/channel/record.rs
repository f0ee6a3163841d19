//! Recording: from the subscriber of a marker to the commit in this thread's ring.
//!
//! A marker with one subscriber takes the fast path, [`SoleSubscriber::try_record`]: lookups that the full path does at every event are done once,
//! when the list of subscribers is created. Events that it cannot write immediately, unless they are known to be lost (`lose`), and all other events
//! are counted by [`OpenChannel::serve`](super::open::OpenChannel::serve) and take [`Ring::record`].
//!
//! A record is a header word, 16 bits of event id and 48 bits of time, followed by the packed fields.
//!
//! Cost of the common case: no locked instruction, and branches only for room, age, order of times, NULs, and `writing`.

use super::account::{EventCounters, Loss};
use super::buffer::{Buffer, RecordError};
use super::header::HEADER_PAGE;
use super::open::{EventId, OpenChannel};
use super::packet::PacketPtr;
use super::ring::Ring;
use super::ring_entry::RingEntry;
use crate::clock::{self, TIME_SHIFT, Timestamp};
use crate::counter::LocalCounter;
use crate::field::{Fields, NulHandling, Writer, size_behind};
use crate::hint::{materialize, opaque_ref, unlikely};
use crate::thread::{MAX_THREADS, ThreadSlot};
use std::hint::black_box;
use std::mem::offset_of;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

/// The smallest page of any supported kernel.
const PAGE: usize = 4096;

/// The lookups for a channel that is the only subscriber of a marker.
#[derive(Clone, Copy, Debug)]
pub struct SoleSubscriber {
    /// The rings of the threads, in the channel's table.
    rings: NonNull<[RingEntry]>,
    id: EventId,
    /// The offset of the event's entry of the account in a ring's memory.
    entry: usize,
    /// `None` if there are no rings.
    channel: Option<NonNull<OpenChannel>>,
}

// SAFETY: points to a table of atomics, which lives as long as the channel; see `new`.
unsafe impl Send for SoleSubscriber {}
// SAFETY: as above.
unsafe impl Sync for SoleSubscriber {}

impl SoleSubscriber {
    /// The caller keeps the channel alive for as long as this is used, by an entry in the same list of subscribers.
    pub fn new(channel: &OpenChannel, id: EventId) -> Self {
        let rings = NonNull::from(channel.ring_table.rings());
        Self { rings, id, entry: Ring::entry_of(id.get()), channel: Some(NonNull::from(channel)) }
    }

    /// A subscriber that records nothing: [`try_record`](Self::try_record) finds no ring, so each event continues with its values on the caller's
    /// path for such events. A flag that directs events there would add a test to every other event.
    #[must_use]
    pub fn without_rings() -> Self {
        static NO_RINGS: [RingEntry; MAX_THREADS] = [const { RingEntry::empty() }; MAX_THREADS];
        // Maps each page now, so that no thread takes the page fault at an event.
        for ring in NO_RINGS.iter().step_by(PAGE / size_of::<RingEntry>()) {
            black_box(ring.is_empty());
        }
        Self { rings: NonNull::from(&NO_RINGS), id: EventId(0), entry: 0, channel: None }
    }

    pub(super) const fn id(&self) -> EventId {
        self.id
    }

    /// The offset of the event's entry of the account in a ring's memory.
    pub(super) const fn entry(&self) -> usize {
        self.entry
    }

    /// The channel; `None` if there are no rings.
    ///
    /// # Safety
    ///
    /// The caller is in a section that keeps the list of subscribers.
    pub(super) unsafe fn channel(&self) -> Option<&OpenChannel> {
        // SAFETY: the list keeps the channel.
        self.channel.map(|channel| unsafe { channel.as_ref() })
    }

    /// The channel, for a caller that has found a ring.
    ///
    /// # Safety
    ///
    /// As for [`channel`](Self::channel); and there are rings.
    #[inline(always)]
    pub(super) unsafe fn channel_of_rings(&self) -> &OpenChannel {
        // SAFETY: as above.
        unsafe { self.channel.unwrap_unchecked().as_ref() }
    }

    /// The entry of the calling thread, in the section that `slot` has entered.
    #[inline(always)]
    pub(super) fn ring_entry(&self, slot: &'static ThreadSlot) -> &RingEntry {
        // SAFETY: the caller's section keeps the list of subscribers, which keeps the channel, which owns the table. That has an entry for each
        // slot index.
        unsafe { self.rings.as_ref().get_unchecked(slot.index()) }
    }

    /// Records an event of the calling thread that is not nested in another one, in the section that `slot` has entered. Returns `false`, with
    /// nothing committed or counted, if the event needs the full path.
    ///
    /// The ring is looked up before the clock is read: the processor does the lookup while it waits for the clock.
    #[inline(always)]
    pub fn try_record<V: Fields>(&self, slot: &'static ThreadSlot, values: &V) -> bool {
        self.try_record_timed(slot, values).is_some()
    }

    /// The same as [`try_record`](Self::try_record), but returns the time of the event.
    #[inline(always)]
    pub fn try_record_timed<V: Fields>(&self, slot: &'static ThreadSlot, values: &V) -> Option<u64> {
        // SAFETY: the caller's section keeps the list of subscribers, which keeps the channel, which owns the table and the rings.
        let ring = unsafe { &*self.ring_entry(slot).open()? };
        let now = match values.time() {
            Some(time) => Timestamp::at(time),
            // SAFETY: the caller is inside a section.
            None => unsafe { clock::fast_now() }?,
        };
        let head = Head::new(self.id.get(), now);
        // Computed early, because it can then take over the register of the offset.
        // SAFETY: the channel has allocated the id, and each of its rings has an entry for it.
        let event = opaque_ref(unsafe { ring.event_at(self.entry) });
        ring.try_record(event, head, values).then_some(head.time)
    }
}

impl Ring {
    /// The entry of an event id that the channel has allocated.
    #[inline(always)]
    pub(super) fn event(&self, id: u16) -> &EventCounters {
        debug_assert!(usize::from(id) < self.account().len(), "the channel has allocated the id");
        // SAFETY: the channel allocates ids, of which it has no more than entries in each account; `Subscriber::record` refuses others.
        unsafe { self.event_at(Self::entry_of(id)) }
    }

    /// The offset of the entry of an event id in a ring's memory, in bytes.
    const fn entry_of(id: u16) -> usize {
        HEADER_PAGE + id as usize * size_of::<EventCounters>()
    }

    /// The entry at an offset that [`entry_of`](Self::entry_of) returned.
    ///
    /// # Safety
    ///
    /// The offset is that of an id that the channel has allocated.
    #[inline(always)]
    unsafe fn event_at(&self, entry: usize) -> &EventCounters {
        // SAFETY: the account follows the header's page in the memory that the ring owns, with an entry for each id that the channel
        // allocates.
        unsafe { self.base.add(entry).cast().as_ref() }
    }

    /// Records an event, or counts the reason for its loss. Returns `false`, with neither done, if the ring is full, or small and outgrown. `event`
    /// is the entry of `id`.
    #[inline(always)]
    pub(super) fn record<V: Fields>(&self, event: &EventCounters, id: u16, time: u64, values: &V) -> bool {
        failpoint!(Fired, self.main.instance());
        let is_handler = self.main.handshake.is_writing();
        if !is_handler && self.main.try_record(Head::new(id, Timestamp::at(time)), values, || ()) {
            failpoint!(Left, self.main.instance());
            event.recorded.increment();
            true
        } else {
            // An opaque copy, so that the compiler does not keep the values in memory on the path above.
            let values = black_box(*values);
            self.record_full_path(id, time, &values, true)
        }
    }

    /// The same for a thread that stays in this ring, because no other ring is ready for it.
    #[cold]
    pub(super) fn record_staying<V: Fields>(&self, id: u16, time: u64, values: &V) -> bool {
        self.record_full_path(id, time, values, false)
    }

    /// Counts and records an event on the fast path. Returns `false`, with nothing committed or counted, if it needs the full path. `event` is its
    /// entry.
    #[inline(always)]
    fn try_record<V: Fields>(&self, event: &EventCounters, head: Head, values: &V) -> bool {
        let is_recorded = self.main.try_record(head, values, || {
            event.fired.increment();
            failpoint!(Fired, self.main.instance());
        });
        if is_recorded {
            failpoint!(Left, self.main.instance());
            // SAFETY: the counter at that offset is `event.recorded`.
            unsafe {
                LocalCounter::increment_at::<{ offset_of!(EventCounters, recorded) }>(NonNull::from(event).cast());
            };
        }
        is_recorded
    }

    #[cold]
    #[inline(never)]
    fn record_full_path<V: Fields>(&self, id: u16, time: u64, values: &V, may_grow: bool) -> bool {
        let tid = &self.header().tid;
        let (buffer, result) = match self.main.record(tid, id, time, values, may_grow) {
            Err(RecordError::Writing) => match self.nested.record(tid, id, time, values, may_grow) {
                Ok(()) => (&self.nested, Ok(())),
                // The flusher may have been closing the main packet, and have finished by now.
                refused => match self.main.record(tid, id, time, values, may_grow) {
                    Err(RecordError::Writing) => (&self.nested, refused),
                    result => (&self.main, result),
                },
            },
            result => (&self.main, result),
        };
        match result {
            Ok(()) => self.event(id).recorded.increment(),
            Err(RecordError::Lost(Loss::RingFull)) if std::ptr::eq(buffer, &raw const self.main) => return false,
            // Only the main buffer can be outgrown.
            Err(RecordError::Outgrown) => return false,
            Err(RecordError::Lost(reason)) => self.lost_in(buffer, id, reason),
            Err(RecordError::Writing) => self.lost_in(buffer, id, Loss::Nested),
        }
        true
    }

    pub(super) fn lost(&self, id: u16, reason: Loss) {
        self.lost_in(&self.main, id, reason);
    }

    /// Counts a loss by its reason, then in its stream: after a kill in between, recovery completes the stream's count (`docs/format-ring.md`).
    fn lost_in(&self, buffer: &Buffer, id: u16, reason: Loss) {
        failpoint!(LossBegun, buffer.instance());
        self.event(id).lost(reason).increment();
        failpoint!(LossNotDiscarded, buffer.instance());
        buffer.count_discarded();
    }
}

impl Buffer {
    /// The fast path: reserve, header word, fields, commit. Returns `false`, with nothing committed or counted, if the record needs
    /// [`record`](Self::record), the full path. Calls `before_commit` once the record cannot fail any more. The caller does not interrupt a
    /// write.
    ///
    /// The order of the steps keeps live ranges short: a saved register costs an event more than a late branch.
    #[inline(always)]
    fn try_record<V: Fields>(&self, head: Head, values: &V, before_commit: impl FnOnce()) -> bool {
        self.handshake.enter();
        failpoint!(Entered, self.stream.instance);
        let time = head.time;
        if time >= self.last_time.load(Ordering::Relaxed) && self.is_fresh(time) {
            let size = size_of_record(values);
            let used = self.used.load(Ordering::Relaxed);
            if self.has_room(used, size) {
                // If a text contains a NUL, the event takes the full path next, with this time or a later one.
                self.last_time.store(time, Ordering::Relaxed);
                let packet = self.open_packet();
                // SAFETY: the packet has room.
                if unsafe { write(packet, head.word, values, used, NulHandling::Detect) } == 0 {
                    before_commit();
                    self.commit(packet, used + size);
                    self.handshake.leave();
                    return true;
                }
            }
        }
        unlikely();
        self.handshake.leave();
        false
    }

    /// The full path: writes one record, in a new packet if necessary.
    fn record<V: Fields>(
        &self,
        tid: &AtomicU32,
        id: u16,
        time: u64,
        values: &V,
        may_grow: bool,
    ) -> Result<(), RecordError> {
        if self.handshake.is_writing() {
            return Err(RecordError::Writing);
        }
        self.handshake.enter();
        failpoint!(Entered, self.stream.instance);
        let result = self.record_inside(tid, id, time, values, may_grow);
        self.handshake.leave();
        result
    }

    fn record_inside<V: Fields>(
        &self,
        tid: &AtomicU32,
        id: u16,
        time: u64,
        values: &V,
        may_grow: bool,
    ) -> Result<(), RecordError> {
        let size = size_of_record(values);
        // The time is earlier than the last record's if a signal handler has recorded one since the clock was read.
        let last = self.last_time.load(Ordering::Relaxed);
        let is_behind = time < last;
        let time = time.max(last);
        let mut used = self.used.load(Ordering::Relaxed);
        if !self.has_room(used, size) || !self.is_fresh(time) {
            used = self.next_packet(size, tid.load(Ordering::Relaxed), time, may_grow)?;
        }
        if is_behind {
            self.counters().clamped.increment();
        }
        let packet = self.open_packet();
        self.last_time.store(time, Ordering::Relaxed);
        let word = Head::new(id, Timestamp::at(time)).word;
        // SAFETY: the packet has room.
        let altered = unsafe { write(packet, word, values, used, NulHandling::Replace) };
        if altered > 0 {
            self.counters().altered.increment();
        }
        self.commit(packet, used + size);
        Ok(())
    }

    #[inline(always)]
    fn open_packet(&self) -> PacketPtr {
        PacketPtr(self.packet.load(Ordering::Relaxed))
    }

    /// Returns whether the open packet belongs to the owner and has room.
    #[inline(always)]
    fn has_room(&self, used: usize, size: usize) -> bool {
        // One comparison for both: with a limit of 0 the room is negative, and sizes never are (`size_of_record`).
        self.handshake.limit().wrapping_sub(used).cast_signed() >= size.cast_signed()
    }

    #[inline(always)]
    fn is_fresh(&self, time: u64) -> bool {
        time < self.expires_at.load(Ordering::Relaxed)
    }

    /// Commits the record written last: the content of the packet now extends to `end`.
    #[inline(always)]
    fn commit(&self, packet: PacketPtr, end: usize) {
        self.used.store(end, Ordering::Relaxed);
        // SAFETY: lives as long as the buffer (the contract of `new`).
        let records = unsafe { &self.counters.as_ref().records };
        records.store(records.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        failpoint!(RecordCounted, self.stream.instance);
        packet.commit(end);
        failpoint!(Committed, self.stream.instance);
    }
}

/// The size of a record's header word in bytes.
const HEADER_WORD: usize = 8;

/// The time of an event, and its header word: `time << 16 | id`.
#[derive(Clone, Copy, Debug)]
struct Head {
    time: u64,
    word: u64,
}

impl Head {
    #[inline(always)]
    fn new(id: u16, now: Timestamp) -> Self {
        // First the part that does not depend on the result of the clock.
        let word = materialize(now.base.word.wrapping_add(u64::from(id)));
        Self { time: materialize(now.time()), word: materialize(word.wrapping_add(now.offset << TIME_SHIFT)) }
    }
}

/// The size of a record in bytes. It is not negative as a signed number.
#[inline(always)]
pub(super) fn size_of_record<V: Fields>(values: &V) -> usize {
    size_behind(HEADER_WORD, values)
}

/// Writes a record into a packet, at `used`. Returns the number of texts with a NUL inside.
///
/// # Safety
///
/// Only the caller writes to the packet, which has room at `used` for the header word and the fields.
#[inline(always)]
unsafe fn write<V: Fields>(packet: PacketPtr, word: u64, values: &V, used: usize, nuls: NulHandling) -> u32 {
    // SAFETY: the caller's promise.
    unsafe {
        failpoint!(Reserved, packet.instance());
        let at = packet.0.add(used);
        at.cast::<[u8; HEADER_WORD]>().write(word.to_le_bytes());
        failpoint!(HeaderWordWritten, packet.instance());
        let mut writer = Writer::new(at.add(HEADER_WORD), nuls);
        values.encode(&mut writer);
        debug_assert_eq!(writer.at(), at.add(size_of_record(values)), "the record has the reserved size");
        failpoint!(FieldsWritten, packet.instance());
        writer.nuls()
    }
}
