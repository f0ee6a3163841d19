//! One buffer of a ring: its packets, the switch from a full one to the next, and their consumption. [`record`](super::record) has the
//! writing of records.
//!
//! The owner of the ring writes it (and its signal handlers, but never while `writing` is set); the consumer reads it.
//!
//! ```text
//!   the slots of the ring, packet k in slot k mod n:
//!
//!   released          closed        (packets counted since the beginning)
//!      ▼                 ▼
//!   ───┬────────┬────────┬────────┬─────────
//!      │ closed │ closed │  open  │  free …
//!   ───┴────────┴────────┴────────┴─────────
//!        consumer takes these  ▲ the owner writes here
//! ```
//!
//! * Producer (the owner): writes the open packet; when a record does not fit, closes it (`closed` + 1) and opens the next. Under discard it
//!   does so only if a slot is free; otherwise the event is lost, and the packet stays open for smaller records. Under overwrite it reuses
//!   the oldest slot. Under wait it waits for a free slot (see `wait_policy`) before the event is lost.
//! * Consumer: takes closed packets, then stores `released`; it may be in another process. Under overwrite it runs only when the owner is
//!   known to be outside. It also closes the open packets of idle owners (see `flush_handshake`).

use super::account::Loss;
use super::config::Policy;
use super::flush_handshake::{FlushHandshake, Switch};
use super::header::StreamCounters;
use super::packet::{Closing, HEADER_SIZE, Opening, PacketPtr, Stream, empty_packet};
use super::wait_policy::WaitPolicy;
use super::wake_word::WakeWord;
#[cfg(target_pointer_width = "64")]
use std::mem::offset_of;
use std::ptr::{NonNull, null_mut};
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};

/// The age at which a packet is closed, in ns: the 48 bits of a record's time must not wrap twice within a packet.
const MAX_AGE: u64 = 1 << 47;

/// The part of a ring, in percent, that waits to be drained when its owner wakes the consumer.
pub(super) const WAKE_AT: u32 = 50;

/// One of the two buffers of a ring.
///
/// The fields that the owner writes are atomic because the flusher accesses them too, when it closes the packet in the owner's place; the
/// handshake orders these accesses.
///
/// Words that are written at every event differ in their address modulo 128: here, in the thread's section (56 or 120), in the account (0
/// and 8) and in the ring's header (64). A load whose address has the lowest twelve bits in common with an earlier store waits for that
/// store (4K aliasing), which costs an event some nanoseconds.
#[derive(Debug)]
#[repr(C, align(128))]
pub(super) struct Buffer {
    base: *mut u8,
    packet_size: usize,
    packets: u64,
    /// The time at which the open packet must be closed.
    pub(super) expires_at: AtomicU64,
    pub(super) counters: NonNull<StreamCounters>,
    /// The time at which the open packet was opened.
    opened_at: AtomicU64,
    released: NonNull<AtomicU64>,
    policy: Policy,
    /// How long to wait for a free slot; `None` for no wait.
    wait_policy: Option<Box<WaitPolicy>>,
    /// The open packet; null if there is none.
    pub(super) packet: AtomicPtr<u8>,
    pub(super) handshake: FlushHandshake,
    /// The used bytes of the open packet, header included.
    pub(super) used: AtomicUsize,
    /// The time of the last record. Never 0 if the clock is the counter.
    pub(super) last_time: AtomicU64,
    pub(super) stream: Stream,
    /// For each slot, the number of records in the stream up to the end of the closed packet in it. Published by `closed` (R2).
    records_at_end: Box<[AtomicU64]>,
    /// The bytes of all closed packets. Written by the thread that closes a packet.
    closed_bytes: AtomicU64,
    /// Wakes the consumer; `None` if events do not.
    wake_word: Option<Arc<WakeWord>>,
}

#[cfg(target_pointer_width = "64")]
const _: () = {
    assert!(offset_of!(Buffer, packet) == 72 && offset_of!(Buffer, handshake) == 80);
    assert!(offset_of!(Buffer, used) == 104 && offset_of!(Buffer, last_time) == 112);
};

// SAFETY: the raw pointers are to memory that the ring owns and that lives as long as the buffer; for concurrent use see `Sync`.
unsafe impl Send for Buffer {}
// SAFETY: counters are atomic. The open packet has one writer at a time: `writing` excludes signal handlers of the owner's thread, and the
// consumer closes it only if the handshake allows that, or if the caller knows that there is no writing owner. The consumer reads closed
// packets after an Acquire load of `closed` (R2), and the owner reuses their slots after an Acquire load of `released` (R1).
unsafe impl Sync for Buffer {}

/// Why a record was not written.
#[derive(Clone, Copy)]
pub(super) enum Refused {
    /// The buffer is in use: the caller is a signal handler that has interrupted a write, or the flusher is closing the packet.
    Writing,
    /// The event is lost.
    Lost(Loss),
}

impl From<Loss> for Refused {
    fn from(reason: Loss) -> Self {
        Self::Lost(reason)
    }
}

/// The memory of a buffer's packets.
#[derive(Clone, Copy, Debug)]
pub(super) struct PacketSlots {
    pub(super) base: *mut u8,
    pub(super) packet_size: usize,
    pub(super) packets: usize,
}

impl Buffer {
    /// # Safety
    ///
    /// At `base` there are `packets * packet_size` bytes for the exclusive use of this buffer, which live as long as it, as do `counters` and
    /// `released`. `packet_size` is a multiple of 8 and larger than a header.
    pub(super) unsafe fn new(
        stream: Stream,
        policy: Policy,
        slots: PacketSlots,
        counters: &StreamCounters,
        released: &AtomicU64,
        now: u64,
    ) -> Self {
        Self {
            handshake: FlushHandshake::new(),
            packet: AtomicPtr::new(null_mut()),
            used: AtomicUsize::new(0),
            opened_at: AtomicU64::new(now),
            expires_at: AtomicU64::new(0),
            last_time: AtomicU64::new(now),
            counters: NonNull::from(counters),
            base: slots.base,
            packet_size: slots.packet_size,
            packets: slots.packets as u64,
            stream,
            policy,
            wait_policy: None,
            released: NonNull::from(released),
            records_at_end: (0..slots.packets).map(|_| AtomicU64::new(0)).collect(),
            closed_bytes: AtomicU64::new(0),
            wake_word: None,
        }
    }

    /// The same buffer with an owner that waits for a free slot.
    pub(super) fn with_wait_policy(self, wait_policy: Option<WaitPolicy>) -> Self {
        Self { wait_policy: wait_policy.map(Box::new), ..self }
    }

    /// The same buffer with an owner that wakes the consumer.
    pub(super) fn with_wake_word(self, wake_word: Option<&Arc<WakeWord>>) -> Self {
        Self { wake_word: wake_word.cloned(), ..self }
    }

    pub(super) fn counters(&self) -> &StreamCounters {
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

    // -- data plane: the owner, beside `record` -------------------------------------------------------------------------

    /// Makes sure that a packet with room for `size` bytes is open, opening the next one if necessary. Returns the offset of the free bytes.
    #[cold]
    #[inline(never)]
    pub(super) fn next_packet(&self, size: usize, tid: u32, time: u64) -> Result<usize, Refused> {
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
        let fresh = time < self.expires_at.load(Ordering::Relaxed);
        if open && fresh && used + size <= self.packet_size {
            // The flusher requested it while it was empty.
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
        // SAFETY: `slot` is below the number of packets, so the packet is inside the memory that `new` was given, and it is free.
        let packet = unsafe {
            let packet = PacketPtr(self.base.add(slot * self.packet_size));
            let opening = Opening {
                time,
                seq_num: next + 1, // 0 is the empty packet that begins the stream
                tid,
                events_before: self.records(),
                size: self.packet_size,
            };
            packet.open(&self.stream, opening);
            packet
        };
        self.packet.store(packet.0, Ordering::Relaxed);
        self.used.store(HEADER_SIZE, Ordering::Relaxed);
        self.opened_at.store(time, Ordering::Relaxed);
        self.expires_at.store(time.saturating_add(MAX_AGE), Ordering::Relaxed);
        failpoint!(OpenWithoutLimit, self.stream.instance);
        self.handshake.set_limit(self.packet_size);
        failpoint!(Opened, self.stream.instance);
        if let (true, Some(wake_word)) = (open, &self.wake_word) {
            if self.waiting_percent() >= WAKE_AT {
                wake_word.wake();
            }
        }
        Ok(HEADER_SIZE)
    }

    /// Whether the slot of packet `next` is free, or becomes free while the owner waits.
    fn has_free_slot(&self, next: u64) -> bool {
        let closed = self.counters().closed.load(Ordering::Relaxed);
        // R1: Acquire pairs with the Release store in `release`: the consumer has read the slot before the owner writes to it. A consumer in
        // another process may store anything: a number beyond the closed packets is invalid, and frees nothing.
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

    /// Whether a packet with a record is open.
    fn has_records(&self) -> bool {
        !self.packet.load(Ordering::Relaxed).is_null() && self.used.load(Ordering::Relaxed) > HEADER_SIZE
    }

    fn records(&self) -> u64 {
        self.counters().records.load(Ordering::Relaxed)
    }

    /// The slot of packet `number`.
    fn slot(&self, number: u64) -> usize {
        (number % self.packets) as usize
    }

    /// Closes the open packet. The caller is the owner between `enter` and `leave`, or the flusher inside `try_close`.
    fn close(&self) {
        let packet = PacketPtr(self.packet.load(Ordering::Relaxed));
        let closing = Closing {
            time: self.last_time.load(Ordering::Relaxed),
            content: self.used.load(Ordering::Relaxed),
            events_discarded: self.counters().discarded.get(),
        };
        failpoint!(CloseBegun, self.stream.instance);
        // SAFETY: the open packet is in the buffer's memory, and the handshake makes the caller its only writer.
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

    /// Runs `handler` as a signal handler that has interrupted a write would run.
    #[cfg(test)]
    pub(super) fn interrupted(&self, handler: impl FnOnce()) {
        self.handshake.interrupted(handler);
    }

    /// Counts an event that could not be recorded in this buffer.
    pub(super) fn count_discarded(&self) {
        self.counters().discarded.increment();
    }

    // -- consumer -------------------------------------------------------------------------------------------------------

    /// Closes the open packet if it has a record. The owner is outside any event, or gone.
    pub(super) fn flush(&self) {
        self.handshake.reset();
        if self.has_records() {
            self.close();
        }
    }

    /// Forgets an open packet without records, whose memory is given back. There is no owner.
    pub(super) fn forget_empty_packet(&self) {
        self.handshake.clear_limit();
        self.packet.store(null_mut(), Ordering::Relaxed);
        self.used.store(0, Ordering::Relaxed);
    }

    /// Requests that the open packet be closed, if it has a record and was opened before `before`. `false` if there is no such packet;
    /// otherwise `thread::fence_owners` and [`try_flush`](Self::try_flush) must follow.
    pub(super) fn request_flush(&self, before: u64) -> bool {
        let wanted = self.has_records() && self.opened_at.load(Ordering::Relaxed) < before;
        if wanted {
            self.handshake.request();
            failpoint!(FlushRequested, self.stream.instance);
        }
        wanted
    }

    /// Closes the requested packet, unless the owner is writing or has closed it itself.
    pub(super) fn try_flush(&self) {
        failpoint!(FlushFenced, self.stream.instance);
        // If the owner is writing, it closes the packet at its next reserve, or a later request does.
        let _ = self.handshake.try_close(|| {
            failpoint!(FlushTaken, self.stream.instance);
            if self.has_records() {
                self.close();
            }
            failpoint!(FlushClosed, self.stream.instance);
        });
        failpoint!(FlushDone, self.stream.instance);
    }

    /// The numbers of the packets that are closed and not released. Under overwrite the oldest ones may already be overwritten.
    pub(super) fn closed_packets(&self) -> std::ops::Range<u64> {
        // R2: pairs with the Release store in `close`.
        let closed = self.counters().closed.load(Ordering::Acquire);
        let oldest = closed.saturating_sub(self.packets);
        self.released().load(Ordering::Relaxed).max(oldest)..closed
    }

    /// The part of the buffer that is closed and not released, in percent.
    pub(super) fn waiting_percent(&self) -> u32 {
        let waiting = self.closed_packets();
        (waiting.end.saturating_sub(waiting.start) * 100 / self.packets.max(1)) as u32
    }

    /// The bytes of a closed packet, and the numbers of records in the stream before and after it.
    ///
    /// # Safety
    ///
    /// `number` is in `closed_packets`. For as long as the bytes are used, the packet is not released (discard, wait), or the owner is outside
    /// any event (overwrite).
    pub(super) unsafe fn packet(&self, number: u64) -> (&[u8], u64, u64) {
        let slot = self.slot(number);
        let after = self.records_at_end[slot].load(Ordering::Relaxed);
        // SAFETY: inside the memory that `new` was given; a closed packet is not written while the caller's condition holds. Its content is
        // limited to `packet_size` bytes, whatever the memory says.
        unsafe {
            let packet = PacketPtr(self.base.add(slot * self.packet_size));
            let content = packet.content().min(self.packet_size);
            (std::slice::from_raw_parts(packet.0, content), packet.events_before(), after)
        }
    }

    /// Stores the checksum of a closed packet in its header.
    ///
    /// # Safety
    ///
    /// As [`packet`](Self::packet), whose bytes are not in use.
    pub(super) unsafe fn put_checksum(&self, number: u64, sum: u32) {
        // SAFETY: inside the memory that `new` was given; the packet is closed, and its owner does not write to it.
        unsafe { PacketPtr(self.base.add(self.slot(number) * self.packet_size)).put_checksum(sum) }
    }

    /// Releases the slots of all packets before `end` to the owner.
    pub(super) fn release(&self, end: u64) {
        // R1: pairs with the Acquire load in `has_free_slot`.
        self.released().store(end, Ordering::Release);
    }

    /// Whether the buffer has ever recorded or lost an event.
    pub(super) fn is_used(&self) -> bool {
        self.records() > 0 || self.counters().discarded.get() > 0
    }

    /// The empty packet that ends the stream, with the final counts. The owner is outside any event, or gone.
    pub(super) fn last_packet(&self, time: u64) -> Vec<u8> {
        let opening = Opening {
            time: time.max(self.last_time.load(Ordering::Relaxed)),
            seq_num: self.counters().closed.load(Ordering::Relaxed) + 1,
            tid: 0,
            events_before: self.records(),
            size: HEADER_SIZE,
        };
        empty_packet(&self.stream, opening, self.counters().discarded.get())
    }

    /// The account of the stream; exact if the owner is outside any event.
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
