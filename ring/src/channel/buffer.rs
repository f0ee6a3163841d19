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
//!   Under overwrite it takes the oldest slot. Under wait it waits for a slot to become free, as `wait_policy` says, before the event is
//!   lost.
//! * Drain: takes closed packets, then sets `released`; it may be in another process. Under overwrite it comes only when the owner is
//!   known to be outside. It also closes the open packets of idle owners: `flush_handshake` says how.
//!
//! Cost of the common case: no locked instruction, no branch but those for room, age, the order of times, NULs, and `writing`.

use super::account::Loss;
use super::config::Policy;
use super::flush_handshake::{FlushHandshake, Switch};
use super::header::StreamCounters;
use super::packet::{Closing, HEADER_SIZE, Opening, PacketPtr, Stream, empty_packet};
use super::wait_policy::WaitPolicy;
use crate::clock::Timestamp;
use crate::field::{Fields, NulHandling, Writer, size_behind};
use crate::hint::unlikely;
use crate::record::{self, Head};
#[cfg(target_pointer_width = "64")]
use std::mem::offset_of;
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};

/// A packet is closed before it is this old, in ns: the 48 bits of a record's time must not run over twice.
const MAX_AGE: u64 = 1 << 47;

/// One of the two buffers of a ring.
///
/// Where the owner writes is atomic for the flusher's sake, who closes the packet while the owner is elsewhere (see `flush_handshake`); what orders
/// it is the gate.
///
/// Words that are written at every event are apart from each other modulo 128, here, in the thread's section (56 or 120), in the
/// account (0 and 8) and in the ring's header (64): a load that has the lowest twelve bits of its address in common with a store before
/// it waits for that store, which costs an event some nanoseconds each.
#[derive(Debug)]
#[repr(C, align(128))]
pub(super) struct Buffer {
    base: *mut u8,
    packet_size: usize,
    packets: u64,
    /// When the open packet is to be closed at the latest.
    too_old: AtomicU64,
    counters: NonNull<StreamCounters>,
    /// The time of the open packet's begin.
    begin: AtomicU64,
    released: NonNull<AtomicU64>,
    policy: Policy,
    /// How long to wait for a free slot; `None`: not at all.
    wait_policy: Option<Box<WaitPolicy>>,
    /// The open packet; null if there is none.
    packet: AtomicPtr<u8>,
    handshake: FlushHandshake,
    /// The bytes of the open packet that are in use, header included.
    used: AtomicUsize,
    /// The time of the last record. Never 0 where the clock is the counter.
    last: AtomicU64,
    stream: Stream,
    /// For each slot, the records of the stream up to the end of the closed packet in it. RcuPointer by `closed`.
    records_at_end: Box<[AtomicU64]>,
    /// The bytes of all closed packets. Changed by whoever closes one.
    closed_bytes: AtomicU64,
}

#[cfg(target_pointer_width = "64")]
const _: () = {
    assert!(offset_of!(Buffer, packet) == 72 && offset_of!(Buffer, handshake) == 80);
    assert!(offset_of!(Buffer, used) == 104 && offset_of!(Buffer, last) == 112);
};

// SAFETY: the raw pointers are to memory that the ring owns, and that lives as long as the buffer; see Sync for its use.
unsafe impl Send for Buffer {}
// SAFETY: counters are atomic. The open packet is used by the owner alone: handlers of the same thread are kept off by `writing`, and
// the drain touches it only where the gate gives it to it, or the caller knows that no owner writes. Closed packets are read by the
// drain after an Acquire load of `closed`, and not written again before an Acquire load of `released` says that they were read.
unsafe impl Sync for Buffer {}

/// Why a record was not written.
#[derive(Clone, Copy)]
pub(super) enum Refused {
    /// The buffer is in use: the caller is a signal handler that interrupts a write, or the packet is being closed from outside.
    Writing,
    /// The event is lost.
    Lost(Loss),
}

impl From<Loss> for Refused {
    fn from(reason: Loss) -> Self {
        Self::Lost(reason)
    }
}

/// Where a buffer's packets are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Places {
    pub(super) base: *mut u8,
    pub(super) packet_size: usize,
    pub(super) packets: usize,
}

/// The bytes of a record, never negative as a signed number.
#[inline(always)]
fn size_of_record<V: Fields>(values: &V) -> usize {
    size_behind(record::HEADER_SIZE, values)
}

/// Writes a record into a packet, at `used`. How many texts have a NUL inside.
///
/// # Safety
///
/// The packet is the caller's, and has room for the record there: the header word and the fields.
#[inline(always)]
unsafe fn write<V: Fields>(packet: PacketPtr, word: u64, values: &V, used: usize, nuls: NulHandling) -> u32 {
    // SAFETY: the caller's promise.
    unsafe {
        failpoint!(Reserved, packet.instance());
        let at = packet.0.add(used);
        record::write_header(at, word);
        failpoint!(HeaderWordWritten, packet.instance());
        let mut writer = Writer::new(at.add(record::HEADER_SIZE), nuls);
        values.encode(&mut writer);
        debug_assert_eq!(writer.at(), at.add(size_of_record(values)), "a record has the size that was reserved");
        failpoint!(FieldsWritten, packet.instance());
        writer.nuls()
    }
}

impl Buffer {
    /// # Safety
    ///
    /// From `base` on there are `packets * packet_size` bytes that live as long as the buffer, as do `counters` and `released`; used by
    /// nobody else. `packet_size` is a multiple of 8 and larger than a header.
    pub(super) unsafe fn new(
        stream: Stream,
        policy: Policy,
        places: Places,
        counters: &StreamCounters,
        released: &AtomicU64,
        now: u64,
    ) -> Self {
        Self {
            handshake: FlushHandshake::new(),
            packet: AtomicPtr::new(null_mut()),
            used: AtomicUsize::new(0),
            begin: AtomicU64::new(now),
            too_old: AtomicU64::new(0),
            last: AtomicU64::new(now),
            counters: NonNull::from(counters),
            base: places.base,
            packet_size: places.packet_size,
            packets: places.packets as u64,
            stream,
            policy,
            wait_policy: None,
            released: NonNull::from(released),
            records_at_end: (0..places.packets).map(|_| AtomicU64::new(0)).collect(),
            closed_bytes: AtomicU64::new(0),
        }
    }

    /// The same, whose owner waits for room.
    pub(super) fn waiting(self, wait_policy: Option<WaitPolicy>) -> Self {
        Self { wait_policy: wait_policy.map(Box::new), ..self }
    }

    #[inline(always)]
    fn counters(&self) -> &StreamCounters {
        // SAFETY: lives as long as the buffer (the contract of `new`).
        unsafe { self.counters.as_ref() }
    }

    fn released(&self) -> &AtomicU64 {
        // SAFETY: lives as long as the buffer (the contract of `new`).
        unsafe { self.released.as_ref() }
    }

    pub(super) fn instance(&self) -> u64 {
        self.stream.instance
    }

    // -- data plane: the owner ------------------------------------------------------------------------------------------

    /// Writes one record if nothing stands in the way: reserve, header word, fields, commit. `false`, and nothing done that counts, if
    /// something does: [`record`](Self::record) knows what.
    #[inline(always)]
    pub(super) fn try_record<V: Fields>(&self, head: Head, values: &V) -> bool {
        self.handshake.enter() && self.try_record_inside(head, values, || ())
    }

    /// The same outside any other event of the owner's. Calls `certain` when nothing can stand in the way any more, before the commit.
    #[inline(always)]
    pub(super) fn try_record_outermost<V: Fields>(&self, head: Head, values: &V, certain: impl FnOnce()) -> bool {
        self.handshake.enter_outermost();
        self.try_record_inside(head, values, certain)
    }

    /// In an order in which nothing is kept for long: a register that has to be saved costs an event more than a branch that comes late.
    #[inline(always)]
    fn try_record_inside<V: Fields>(&self, head: Head, values: &V, certain: impl FnOnce()) -> bool {
        failpoint!(Entered, self.stream.instance);
        let time = head.time;
        if time >= self.last.load(Ordering::Relaxed) && self.is_young(time) {
            let size = size_of_record(values);
            let used = self.used.load(Ordering::Relaxed);
            if self.has_room(used, size) {
                // Where a text turns out to have a NUL, the event comes again, with this time or a later one.
                self.last.store(time, Ordering::Relaxed);
                let packet = self.open_packet();
                // SAFETY: the packet has room.
                if unsafe { write(packet, head.word, values, used, NulHandling::Detect) } == 0 {
                    certain();
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

    /// Writes one record, in the next packet if need be.
    pub(super) fn record<V: Fields>(&self, tid: &AtomicU32, id: u16, time: u64, values: &V) -> Result<(), Refused> {
        if !self.handshake.enter() {
            return Err(Refused::Writing);
        }
        failpoint!(Entered, self.stream.instance);
        let result = self.record_inside(tid, id, time, values);
        self.handshake.leave();
        result
    }

    fn record_inside<V: Fields>(&self, tid: &AtomicU32, id: u16, time: u64, values: &V) -> Result<(), Refused> {
        let size = size_of_record(values);
        // The clock stands behind the last record when a handler recorded between our clock reading and here.
        let last = self.last.load(Ordering::Relaxed);
        let is_behind = time < last;
        let time = time.max(last);
        let mut used = self.used.load(Ordering::Relaxed);
        if !self.has_room(used, size) || !self.is_young(time) {
            used = self.next_packet(size, tid.load(Ordering::Relaxed), time)?;
        }
        if is_behind {
            self.counters().clamped.increment();
        }
        let packet = self.open_packet();
        self.last.store(time, Ordering::Relaxed);
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

    /// Whether the open packet is the owner's, and has room.
    #[inline(always)]
    fn has_room(&self, used: usize, size: usize) -> bool {
        // One comparison for both: with a limit of 0 the room is negative. No size is (`size_of_record`).
        self.handshake.limit().wrapping_sub(used).cast_signed() >= size.cast_signed()
    }

    #[inline(always)]
    fn is_young(&self, time: u64) -> bool {
        time < self.too_old.load(Ordering::Relaxed)
    }

    /// Makes the record count that was written last: up to `end`.
    #[inline(always)]
    fn commit(&self, packet: PacketPtr, end: usize) {
        self.used.store(end, Ordering::Relaxed);
        self.counters().records.store(self.records() + 1, Ordering::Relaxed);
        failpoint!(RecordCounted, self.stream.instance);
        packet.commit(end);
        failpoint!(Committed, self.stream.instance);
    }

    /// Sees to it that a packet is open that has room for `size` bytes, and gives the place of the first.
    #[cold]
    #[inline(never)]
    fn next_packet(&self, size: usize, tid: u32, time: u64) -> Result<usize, Refused> {
        if size > self.packet_size - HEADER_SIZE {
            return Err(Loss::TooLarge.into());
        }
        match self.handshake.may_switch() {
            Switch::Busy => return Err(Refused::Writing),
            Switch::Close if self.has_records() => {
                failpoint!(SwitchRequested, self.stream.instance);
                self.close();
            }
            Switch::Free | Switch::Close => {}
        }
        let open = !self.packet.load(Ordering::Relaxed).is_null();
        let used = self.used.load(Ordering::Relaxed);
        let young = time < self.too_old.load(Ordering::Relaxed);
        if open && young && used + size <= self.packet_size {
            // It was asked to be closed before there was anything in it.
            self.handshake.set_limit(self.packet_size);
            return Ok(used);
        }
        let next = self.counters().closed.load(Ordering::Relaxed) + u64::from(open);
        if self.policy != Policy::Overwrite && !self.has_free_slot(next) {
            return Err(Loss::RingFull.into());
        }
        failpoint!(SwitchBegun, self.stream.instance);
        if open {
            self.close();
        }
        let slot = self.slot(next);
        // SAFETY: `slot` is below the number of packets, so the place is inside the memory given to `new`, and free.
        let packet = unsafe {
            let packet = PacketPtr(self.base.add(slot * self.packet_size));
            let opening = Opening {
                time,
                seq_num: next + 1, // 0 is the empty packet with which the stream begins
                tid,
                events_before: self.records(),
                size: self.packet_size,
            };
            packet.open(&self.stream, opening);
            packet
        };
        self.packet.store(packet.0, Ordering::Relaxed);
        self.used.store(HEADER_SIZE, Ordering::Relaxed);
        self.begin.store(time, Ordering::Relaxed);
        self.too_old.store(time.saturating_add(MAX_AGE), Ordering::Relaxed);
        failpoint!(OpenWithoutLimit, self.stream.instance);
        self.handshake.set_limit(self.packet_size);
        failpoint!(Opened, self.stream.instance);
        Ok(HEADER_SIZE)
    }

    /// Whether the slot of packet `next` is free, or becomes so while the owner waits.
    fn has_free_slot(&self, next: u64) -> bool {
        let closed = self.counters().closed.load(Ordering::Relaxed);
        // R1: Acquire pairs with the Release store in `release`: the drain has read the slot before we write to it. A drain in another
        // process may store anything: of packets that are not closed none was taken, and a number beyond them frees nothing.
        let released = || Some(self.released().load(Ordering::Acquire)).filter(|taken| *taken <= closed).unwrap_or(0);
        let enough = (next + 1).saturating_sub(self.packets);
        if released() >= enough {
            return true;
        }
        let Some(wait_policy) = &self.wait_policy else { return false };
        let (waited, has_room) = wait_policy.wait(enough, released);
        if !waited.is_zero() {
            self.counters().waited.increment();
            self.counters().waited_ns.add_shared(waited.as_nanos() as u64);
        }
        has_room
    }

    /// Whether a packet is open that holds a record.
    fn has_records(&self) -> bool {
        !self.packet.load(Ordering::Relaxed).is_null() && self.used.load(Ordering::Relaxed) > HEADER_SIZE
    }

    #[inline(always)]
    fn records(&self) -> u64 {
        self.counters().records.load(Ordering::Relaxed)
    }

    /// The slot of packet `number`.
    fn slot(&self, number: u64) -> usize {
        (number % self.packets) as usize
    }

    /// Closes the open packet. The caller has the gate: it is the owner between `enter` and `leave`, or was given it by `settle`.
    fn close(&self) {
        let packet = PacketPtr(self.packet.load(Ordering::Relaxed));
        let closing = Closing {
            time: self.last.load(Ordering::Relaxed),
            content: self.used.load(Ordering::Relaxed),
            events_discarded: self.counters().discarded.get(),
        };
        failpoint!(CloseBegun, self.stream.instance);
        // SAFETY: the open packet is a valid place and ours.
        unsafe { packet.close(closing) };
        self.packet.store(null_mut(), Ordering::Relaxed);
        self.used.store(0, Ordering::Relaxed);
        let closed_bytes = self.closed_bytes.load(Ordering::Relaxed) + closing.content as u64;
        self.closed_bytes.store(closed_bytes, Ordering::Relaxed);
        self.handshake.clear_limit();
        let number = self.counters().closed.load(Ordering::Relaxed);
        self.records_at_end[self.slot(number)].store(self.records(), Ordering::Relaxed);
        failpoint!(CloseNotCounted, self.stream.instance);
        // R2: Release pairs with the Acquire load in `closed_packets`: the packet is whole before it counts as closed.
        self.counters().closed.store(number + 1, Ordering::Release);
        failpoint!(CloseCounted, self.stream.instance);
    }

    /// Runs what a signal handler would that comes in the middle of a record.
    #[cfg(test)]
    pub(super) fn interrupted(&self, handler: impl FnOnce()) {
        self.handshake.interrupted(handler);
    }

    /// Counts an event that was lost on its way into this buffer.
    pub(super) fn count_discarded(&self) {
        self.counters().discarded.increment();
    }

    // -- consumer -------------------------------------------------------------------------------------------------------

    /// Closes the open packet, if it has any record. The caller knows that the owner is outside, or gone.
    pub(super) fn flush(&self) {
        self.handshake.reset();
        if self.has_records() {
            self.close();
        }
    }

    /// Asks for the open packet to be closed, if it holds a record and began before `before`. `false` if there is none; otherwise
    /// `thread::fence_owners` and `settle` follow.
    pub(super) fn request_flush(&self, before: u64) -> bool {
        let wanted = self.has_records() && self.begin.load(Ordering::Relaxed) < before;
        if wanted {
            self.handshake.request();
            failpoint!(FlushRequested, self.stream.instance);
        }
        wanted
    }

    /// Closes the packet that was asked for, unless the owner is writing, or does it itself.
    pub(super) fn try_flush(&self) {
        failpoint!(FlushFenced, self.stream.instance);
        // What is left to the owner is closed at its next reserve; or here, when it is asked for again.
        let _ = self.handshake.try_close(|| {
            failpoint!(FlushTaken, self.stream.instance);
            if self.has_records() {
                self.close();
            }
            failpoint!(FlushClosed, self.stream.instance);
        });
        failpoint!(FlushDone, self.stream.instance);
    }

    /// The numbers of the packets that are closed and not released. Under overwrite the older ones may be gone already.
    pub(super) fn closed_packets(&self) -> std::ops::Range<u64> {
        // R2: pairs with the Release addition in `close`.
        let closed = self.counters().closed.load(Ordering::Acquire);
        let oldest = closed.saturating_sub(self.packets);
        self.released().load(Ordering::Relaxed).max(oldest)..closed
    }

    /// How much of the buffer is closed and not released, in percent.
    pub(super) fn waiting_percent(&self) -> u32 {
        let waiting = self.closed_packets();
        (waiting.end.saturating_sub(waiting.start) * 100 / self.packets.max(1)) as u32
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
        self.released().store(end, Ordering::Release);
    }

    /// Whether the buffer was ever used: a record, or a loss.
    pub(super) fn is_used(&self) -> bool {
        self.records() > 0 || self.counters().discarded.get() > 0
    }

    /// The empty packet with the final counts with which the stream ends. The owner is outside, or gone.
    pub(super) fn last_packet(&self, time: u64) -> Vec<u8> {
        let opening = Opening {
            time: time.max(self.last.load(Ordering::Relaxed)),
            seq_num: self.counters().closed.load(Ordering::Relaxed) + 1,
            tid: 0,
            events_before: self.records(),
            size: HEADER_SIZE,
        };
        empty_packet(&self.stream, opening, self.counters().discarded.get())
    }

    /// What the buffer counted; exact if the owner is outside.
    pub(super) fn account(&self) -> super::StreamAccount {
        let counters = self.counters();
        super::StreamAccount {
            instance: self.stream.instance,
            recorded: self.records(),
            bytes: self.closed_bytes.load(Ordering::Relaxed) + self.used.load(Ordering::Relaxed) as u64,
            discarded: counters.discarded.get(),
            clamped: counters.clamped.get(),
            altered: counters.altered.get(),
            waited: counters.waited.get(),
            waited_ns: counters.waited_ns.get(),
        }
    }
}
