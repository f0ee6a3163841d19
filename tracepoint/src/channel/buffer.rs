//! One buffer of a ring: reserve, write, commit, and the switch from a full packet to the next.
//!
//! Written by the thread that owns the ring (and by its signal handlers, but never while `writing` is set), read by the drain.
//!
//! ```text
//!   the slots of the ring, packet k in slot k mod n:
//!
//!   released          closed        (packets counted since the beginning)
//!      ▼                 ▼
//!   ───┬────────┬────────┬────────┬─────────
//!      │ closed │ closed │  open  │  free …
//!   ───┴────────┴────────┴────────┴─────────
//!        drain takes these  ▲ the owner writes here
//! ```
//!
//! * Owner: writes the open packet; when a record does not fit, closes it (`closed` + 1) and opens the next. Under discard it
//!   does so only if a slot is free; otherwise the event is lost and the open packet stays open, for smaller records to come.
//!   Under overwrite it takes the oldest slot.
//! * Drain: takes closed packets, then sets `released`. Under overwrite it comes only when the owner is known to be outside.
//!
//! Cost of the common case: no locked instruction, no branch but those for room, age and `writing`.

use super::account::Loss;
use super::config::Policy;
use super::packet::{Closing, HEADER_SIZE, Opening, PacketPtr, Stream, empty_packet};
use crate::counter::LocalCounter;
use crate::field::{Fields, Writer};
use crate::record;
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, compiler_fence};

/// A packet is closed before it is this old, in ns: the 48 bits of a record's time must not run over twice.
const MAX_AGE: u64 = 1 << 47;

/// Where the owner writes.
#[derive(Debug)]
struct Cursor {
    /// The open packet; null before the first event.
    packet: PacketPtr,
    /// The bytes of the open packet that are in use, header included.
    used: usize,
    /// The time of the open packet's begin.
    begin: u64,
    /// The time of the last record.
    last: u64,
}

/// One of the two buffers of a ring.
#[derive(Debug)]
pub(super) struct Buffer {
    stream: Stream,
    policy: Policy,
    base: *mut u8,
    packet_size: usize,
    packets: u64,
    /// Set from reserve to commit. Only the owner and its signal handlers look at it.
    writing: AtomicBool,
    cursor: UnsafeCell<Cursor>,
    /// Records in this stream since the beginning. Stored by the owner, between reserve and commit; loaded by anybody.
    records: AtomicU64,
    closed: AtomicU64,
    released: AtomicU64,
    /// For each slot, the records of the stream up to the end of the closed packet in it. Published by `closed`.
    records_at_end: Box<[AtomicU64]>,
    discarded: LocalCounter,
    clamped: LocalCounter,
    altered: LocalCounter,
}

// SAFETY: the raw pointer is to memory that the ring owns, and that lives as long as the buffer; see Sync for its use.
unsafe impl Send for Buffer {}
// SAFETY: `cursor` and the open packet are used by the owner alone: handlers of the same thread are kept off by `writing`, and
// the drain touches them only in `flush` and `last_packet`, whose callers know that no owner writes. Closed packets are read
// by the drain after an Acquire load of `closed`, and not written again before an Acquire load of `released` says that they
// were read.
unsafe impl Sync for Buffer {}

/// Why a record was not written.
#[derive(Clone, Copy)]
pub(super) enum Refused {
    /// The buffer is being written: the caller is a signal handler.
    Writing,
    /// The event is lost.
    Lost(Loss),
}

impl Buffer {
    /// # Safety
    ///
    /// From `base` on there are `packets * packet_size` bytes that live as long as the buffer, used by nobody else.
    /// `packet_size` is a multiple of 8 and larger than a header.
    pub(super) unsafe fn new(
        stream: Stream,
        policy: Policy,
        base: *mut u8,
        packet_size: usize,
        packets: usize,
        now: u64,
    ) -> Self {
        Self {
            stream,
            policy,
            base,
            packet_size,
            packets: packets as u64,
            writing: AtomicBool::new(false),
            cursor: UnsafeCell::new(Cursor {
                packet: PacketPtr(std::ptr::null_mut()),
                used: packet_size,
                begin: now,
                last: now,
            }),
            records: AtomicU64::new(0),
            closed: AtomicU64::new(0),
            released: AtomicU64::new(0),
            records_at_end: (0..packets).map(|_| AtomicU64::new(0)).collect(),
            discarded: LocalCounter::new(),
            clamped: LocalCounter::new(),
            altered: LocalCounter::new(),
        }
    }

    pub(super) fn instance(&self) -> u64 {
        self.stream.instance
    }

    // -- data plane: the owner ------------------------------------------------------------------------------------------

    /// Writes one record: reserve, header word, fields, commit.
    #[inline(always)]
    pub(super) fn record<V: Fields>(&self, tid: u32, id: u16, time: u64, values: &V) -> Result<(), Refused> {
        if self.writing.load(Ordering::Relaxed) {
            return Err(Refused::Writing);
        }
        self.writing.store(true, Ordering::Relaxed);
        // W1: what follows stays after the store of `writing` and before the one that clears it, for a handler that interrupts
        // here. It runs on the same thread, so that the compiler is all that has to be told.
        compiler_fence(Ordering::SeqCst);
        // SAFETY: `writing` is ours, so no handler is in here; other threads keep off (see Sync).
        let cursor = unsafe { &mut *self.cursor.get() };
        let result = self.record_at(cursor, tid, id, time, values);
        compiler_fence(Ordering::SeqCst);
        self.writing.store(false, Ordering::Relaxed);
        result.map_err(Refused::Lost)
    }

    #[inline(always)]
    fn record_at<V: Fields>(&self, cursor: &mut Cursor, tid: u32, id: u16, time: u64, values: &V) -> Result<(), Loss> {
        let size = values.encoded_size().saturating_add(record::HEADER_SIZE);
        // The clock stands behind the last record when a handler recorded between our clock reading and here.
        let time = if time < cursor.last {
            self.clamped.increment();
            cursor.last
        } else {
            time
        };
        if size > self.packet_size - cursor.used || time - cursor.begin >= MAX_AGE {
            self.next_packet(cursor, size, tid, time)?;
        }
        // SAFETY: the open packet has `size` free bytes at `used`: the header word and the fields.
        unsafe {
            let at = cursor.packet.0.add(cursor.used);
            record::write_header(at, id, time);
            let mut writer = Writer::new(at.add(record::HEADER_SIZE));
            values.encode(&mut writer);
            debug_assert_eq!(writer.at(), at.add(size), "a record has the size that was reserved");
            if writer.altered() > 0 {
                self.altered.increment();
            }
        }
        cursor.used += size;
        cursor.last = time;
        self.records.store(self.records() + 1, Ordering::Relaxed);
        cursor.packet.commit(cursor.used);
        Ok(())
    }

    #[cold]
    #[inline(never)]
    fn next_packet(&self, cursor: &mut Cursor, size: usize, tid: u32, time: u64) -> Result<(), Loss> {
        if size > self.packet_size - HEADER_SIZE {
            return Err(Loss::TooLarge);
        }
        let open = !cursor.packet.0.is_null();
        let next = self.closed.load(Ordering::Relaxed) + u64::from(open);
        // R1: Acquire pairs with the Release store in `release`: the drain has read the slot before we write to it.
        if self.policy == Policy::Discard && next - self.released.load(Ordering::Acquire) >= self.packets {
            return Err(Loss::RingFull);
        }
        if open {
            self.close(cursor);
        }
        let slot = self.slot(next);
        // SAFETY: `slot` is below the number of packets, so the place is inside the memory given to `new`, and free.
        unsafe {
            cursor.packet = PacketPtr(self.base.add(slot * self.packet_size));
            let opening = Opening {
                time,
                seq_num: next + 1, // 0 is the empty packet with which the stream begins
                tid,
                events_before: self.records(),
                size: self.packet_size,
            };
            cursor.packet.open(&self.stream, opening);
        }
        cursor.used = HEADER_SIZE;
        cursor.begin = time;
        Ok(())
    }

    fn records(&self) -> u64 {
        self.records.load(Ordering::Relaxed)
    }

    /// The slot of packet `number`.
    fn slot(&self, number: u64) -> usize {
        (number % self.packets) as usize
    }

    fn close(&self, cursor: &mut Cursor) {
        let closing = Closing { time: cursor.last, content: cursor.used, events_discarded: self.discarded.get() };
        // SAFETY: the open packet is a valid place and ours.
        unsafe { cursor.packet.close(closing) };
        cursor.packet = PacketPtr(std::ptr::null_mut());
        cursor.used = self.packet_size;
        let number = self.closed.load(Ordering::Relaxed);
        self.records_at_end[self.slot(number)].store(self.records(), Ordering::Relaxed);
        // R2: Release pairs with the Acquire load in `closed_packets`: the packet is whole before it counts as closed.
        self.closed.store(number + 1, Ordering::Release);
    }

    /// Runs what a signal handler would that comes in the middle of a record.
    #[cfg(test)]
    pub(super) fn interrupted(&self, handler: impl FnOnce()) {
        self.writing.store(true, Ordering::Relaxed);
        handler();
        self.writing.store(false, Ordering::Relaxed);
    }

    /// Counts an event that was lost on its way into this buffer.
    pub(super) fn count_discarded(&self) {
        self.discarded.increment();
    }

    // -- consumer -------------------------------------------------------------------------------------------------------

    /// Closes the open packet, if it has any record. The caller knows that the owner is outside, or gone.
    pub(super) fn flush(&self) {
        // SAFETY: no owner writes (the caller's knowledge).
        let cursor = unsafe { &mut *self.cursor.get() };
        if !cursor.packet.0.is_null() && cursor.used > HEADER_SIZE {
            self.close(cursor);
        }
    }

    /// The numbers of the packets that are closed and not released. Under overwrite the older ones may be gone already.
    pub(super) fn closed_packets(&self) -> std::ops::Range<u64> {
        // R2: pairs with the Release addition in `close`.
        let closed = self.closed.load(Ordering::Acquire);
        let oldest = closed.saturating_sub(self.packets);
        self.released.load(Ordering::Relaxed).max(oldest)..closed
    }

    /// The bytes of a closed packet, and how many records the stream had before it and has after it.
    ///
    /// # Safety
    ///
    /// `number` is in `closed_packets`, and not released (discard), or the owner is outside (overwrite), for as long as the bytes
    /// are used.
    pub(super) unsafe fn packet(&self, number: u64) -> (&[u8], u64, u64) {
        let slot = self.slot(number);
        let after = self.records_at_end[slot].load(Ordering::Relaxed);
        // SAFETY: inside the memory given to `new`; a closed packet is not written while the caller's condition holds, and its
        // content is at most `packet_size` bytes, as the owner left it.
        unsafe {
            let packet = PacketPtr(self.base.add(slot * self.packet_size));
            let content = packet.content().min(self.packet_size);
            (std::slice::from_raw_parts(packet.0, content), packet.events_before(), after)
        }
    }

    /// Gives the slots of all packets before `end` back to the owner.
    pub(super) fn release(&self, end: u64) {
        // R1: pairs with the Acquire load in `next_packet`.
        self.released.store(end, Ordering::Release);
    }

    /// Whether the buffer was ever used: a record, or a loss.
    pub(super) fn is_used(&self) -> bool {
        self.records() > 0 || self.discarded.get() > 0
    }

    /// The empty packet with the final counts with which the stream ends. The owner is outside, or gone.
    pub(super) fn last_packet(&self, time: u64) -> Vec<u8> {
        // SAFETY: no owner writes (the caller's knowledge).
        let cursor = unsafe { &*self.cursor.get() };
        let opening = Opening {
            time: time.max(cursor.last),
            seq_num: self.closed.load(Ordering::Relaxed) + 1,
            tid: 0,
            events_before: self.records(),
            size: HEADER_SIZE,
        };
        empty_packet(&self.stream, opening, self.discarded.get())
    }

    /// What the buffer counted; exact if the owner is outside.
    pub(super) fn account(&self) -> super::StreamAccount {
        super::StreamAccount {
            instance: self.stream.instance,
            recorded: self.records(),
            discarded: self.discarded.get(),
            clamped: self.clamped.get(),
            altered: self.altered.get(),
        }
    }
}
