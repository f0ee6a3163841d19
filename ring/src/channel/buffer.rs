//! A buffer of a ring: the [slots](super::slots) of its packets. [`record`](super::record) writes records, `switch` switches
//! from a full packet to the next, `take` is the consumer's side.
//!
//! The owner of the ring writes it (and its signal handlers, but never while `writing` is set); the consumer reads it.
//!
//! * Producer (the owner): writes the open packet; when a record does not fit, closes it (`closed` + 1) and opens the next. Under discard it
//!   does so only if a slot is free; otherwise the event is lost, and the packet stays open for smaller records. Under overwrite it reuses
//!   the oldest slot. Under wait it waits for a free slot (see `wait_policy`) before the event is lost.
//! * Consumer: takes closed packets, then stores `released`; it may be in another process. Under overwrite it runs only when the owner is
//!   known to be outside of any event. It also closes the open packets of idle owners (see `flush_handshake`).

mod full_mark;
mod growth;
mod switch;
mod take;

use super::account::Loss;
use super::config::Policy;
use super::flush_handshake::FlushHandshake;
use super::header::StreamCounters;
use super::packet::PacketPtr;
use super::packet_header::{HEADER_SIZE, StreamKey};
use super::slots::PacketSlots;
use super::wait_policy::WaitPolicy;
use super::wake_word::WakeWord;
use full_mark::FullMark;
use growth::Growth;
#[cfg(target_pointer_width = "64")]
use std::mem::offset_of;
use std::ptr::{NonNull, null_mut};
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};

/// The age at which a packet is closed, in ns: the 48 bits of a record's time must not wrap twice within a packet.
const MAX_AGE: u64 = 1 << 47;

/// Percentage of a ring waiting to be drained at which its owner wakes the consumer.
pub(super) const WAKE_AT: u32 = 50;

/// One of the two buffers of a ring.
///
/// The fields that the owner writes are atomic because the flusher also accesses them, when it closes the packet in the owner's place; the
/// handshake orders these accesses.
///
/// Words that are written at every event differ in their address modulo 128: here, in the thread's section (56 or 120), in the account (0
/// and 8) and in the ring's header (64). A load whose address has the lowest twelve bits in common with an earlier store waits for that
/// store (4K aliasing), which costs an event some nanoseconds.
#[derive(Debug)]
#[repr(C, align(128))]
pub(super) struct Buffer {
    base: *mut u8,
    slots: PacketSlots,
    /// The time at which the open packet must be closed.
    pub(super) expires_at: AtomicU64,
    pub(super) counters: NonNull<StreamCounters>,
    /// The time at which the open packet was opened.
    opened_at: AtomicU64,
    released: NonNull<AtomicU64>,
    policy: Policy,
    /// The wait for a free slot; `None` for no wait.
    wait_policy: Option<Box<WaitPolicy>>,
    /// The open packet; null if there is none.
    pub(super) packet: AtomicPtr<u8>,
    pub(super) handshake: FlushHandshake,
    /// The used bytes of the open packet, including the header.
    pub(super) used: AtomicUsize,
    /// The time of the last record. Never 0 if the clock is the counter.
    pub(super) last_time: AtomicU64,
    pub(super) stream: StreamKey,
    /// For each slot, the number of records in the stream up to the end of the closed packet in it. Published by `closed` (R2).
    records_at_end: Box<[AtomicU64]>,
    /// The total size of all closed packets in bytes. Written by the thread that closes a packet.
    closed_bytes: AtomicU64,
    /// Wakes the consumer; `None` if events do not wake it.
    wake_word: Option<Arc<WakeWord>>,
    /// In a small ring: determines when its owner needs a large one.
    growth: Option<Growth>,
    /// Under discard: the known state of a full buffer.
    full_mark: FullMark,
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

/// The reason that a record was not written.
#[derive(Clone, Copy)]
pub(super) enum RecordError {
    /// The buffer is in use: the caller is a signal handler that has interrupted a write, or the flusher is closing the packet.
    Writing,
    /// The owner needs a large ring.
    Outgrown,
    /// The event is lost.
    Lost(Loss),
}

impl From<Loss> for RecordError {
    fn from(reason: Loss) -> Self {
        Self::Lost(reason)
    }
}

impl Buffer {
    /// # Safety
    ///
    /// At `base` there is room for all `slots`, for the exclusive use of this buffer, which lives as long as it, as do `counters` and `released`.
    /// The size of a slot is a multiple of 8 and larger than a header.
    pub(super) unsafe fn new(
        stream: StreamKey,
        policy: Policy,
        (base, slots): (*mut u8, PacketSlots),
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
            base,
            slots,
            stream,
            policy,
            wait_policy: None,
            released: NonNull::from(released),
            records_at_end: (0..slots.count).map(|_| AtomicU64::new(0)).collect(),
            closed_bytes: AtomicU64::new(0),
            wake_word: None,
            growth: None,
            full_mark: FullMark::default(),
        }
    }

    /// The same buffer with an owner that continues in a large ring.
    pub(super) fn with_growth(self) -> Self {
        Self { growth: Some(Growth::default()), ..self }
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

    /// Prepares the buffer for a thread that has taken the ring.
    pub(super) fn begin_owner(&self) {
        if let Some(growth) = &self.growth {
            growth.begin();
        }
    }

    /// Makes the stream's times later than the last one of the owner's previous stream, so that readers, which merge streams by time, keep the order
    /// of a thread's events with any clock. The owner has just taken the ring.
    pub(super) fn follow(&self, last: &Self) {
        let [own, last] = [self, last].map(|buffer| buffer.last_time.load(Ordering::Relaxed));
        self.last_time.store(own.max(last.saturating_add(1)), Ordering::Relaxed);
    }

    /// Returns whether a packet with a record is open.
    fn has_records(&self) -> bool {
        !self.packet.load(Ordering::Relaxed).is_null() && self.used.load(Ordering::Relaxed) > HEADER_SIZE
    }

    fn records(&self) -> u64 {
        self.counters().records.load(Ordering::Relaxed)
    }

    /// The size of a packet's slot, in bytes.
    const fn packet_size(&self) -> usize {
        self.slots.size as usize
    }

    fn records_at_end(&self, number: u64) -> &AtomicU64 {
        &self.records_at_end[self.slots.index_of(number) as usize]
    }

    /// The slot of packet `number`.
    fn packet_at(&self, number: u64) -> PacketPtr {
        // SAFETY: the offset is that of a slot, so the packet is inside the memory that `new` was given.
        PacketPtr(unsafe { self.base.add(self.slots.offset_of(number) as usize) })
    }

    /// Runs `handler` like a signal handler that has interrupted a write.
    #[cfg(test)]
    pub(super) fn interrupted(&self, handler: impl FnOnce()) {
        self.handshake.interrupted(handler);
    }

    /// Counts an event that could not be recorded in this buffer.
    pub(super) fn count_discarded(&self) {
        self.counters().discarded.increment();
    }

    /// Number of events that could not be recorded in this buffer.
    pub(super) fn discarded(&self) -> u64 {
        self.counters().discarded.get()
    }

    /// Returns whether the buffer has ever recorded or lost an event.
    pub(super) fn is_used(&self) -> bool {
        self.records() > 0 || self.discarded() > 0
    }

    /// The account of the stream; exact if the owner is outside of any event.
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
