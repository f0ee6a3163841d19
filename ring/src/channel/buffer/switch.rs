//! The owner's switch from one packet to the next: if a record does not fit, the open packet is closed and the next one is opened, if there is
//! a free slot.

use super::super::account::Loss;
use super::super::config::Policy;
use super::super::flush_handshake::Switch;
use super::super::packet::{PacketEnd, PacketPtr};
use super::super::packet_header::{HEADER_SIZE, PacketHeader, bits};
use super::super::slots::sequence_of;
use super::growth::Growth;
use super::{Buffer, MAX_AGE, RecordError, WAKE_AT};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU64, Ordering};

impl Buffer {
    /// Ensures that a packet with room for `size` bytes is open, opening the next one if necessary. Returns the offset of the free bytes.
    /// With `may_grow`, the event is recorded in a large ring if it is refused as [`RecordError::Outgrown`].
    #[cold]
    #[inline(never)]
    pub(in crate::channel) fn next_packet(
        &self,
        size: usize,
        tid: u32,
        time: u64,
        may_grow: bool,
    ) -> Result<usize, RecordError> {
        let packet_size = self.packet_size();
        if size > packet_size - HEADER_SIZE {
            return Err(match &self.growth {
                None => Loss::TooLarge.into(),
                Some(_) if may_grow => RecordError::Outgrown,
                // No large ring is ready.
                Some(_) => Loss::NoRing.into(),
            });
        }
        match self.handshake.may_switch() {
            Switch::Busy => return Err(RecordError::Writing),
            Switch::Close if self.has_records() => {
                failpoint!(SwitchRequested, self.stream.instance);
                self.close();
            }
            Switch::Free | Switch::Close => {}
        }
        let open = !self.packet.load(Ordering::Relaxed).is_null();
        let used = self.used.load(Ordering::Relaxed);
        let fresh = time < self.expires_at.load(Ordering::Relaxed);
        if open && fresh && used + size <= packet_size {
            // The flusher requested it while it was empty.
            self.handshake.set_limit(packet_size);
            return Ok(used);
        }
        let next = self.counters().closed.load(Ordering::Relaxed) + u64::from(open);
        if let Some(growth) = &self.growth
            && may_grow
            && (growth.is_outgrown() || !self.is_free(next))
        {
            return Err(RecordError::Outgrown);
        }
        if self.policy != Policy::Overwrite && !self.has_free_slot(next) {
            self.mark_full(next, if open { packet_size - used } else { 0 });
            return Err(if self.growth.is_some() { Loss::NoRing } else { Loss::RingFull }.into());
        }
        failpoint!(SwitchBegun, self.stream.instance);
        if open {
            self.close();
            self.growth.iter().for_each(Growth::count_full);
        }
        let packet = self.packet_at(next);
        let header = PacketHeader {
            packet_bits: bits(packet_size),
            sequence: sequence_of(next),
            tid,
            events_before: self.records(),
            ..PacketHeader::empty(self.stream, time)
        };
        // SAFETY: the slot is in the buffer's memory, and it is free.
        unsafe { packet.open(&header) };
        self.packet.store(packet.0, Ordering::Relaxed);
        self.used.store(HEADER_SIZE, Ordering::Relaxed);
        self.opened_at.store(time, Ordering::Relaxed);
        self.expires_at.store(time.saturating_add(MAX_AGE), Ordering::Relaxed);
        failpoint!(OpenWithoutLimit, self.stream.instance);
        self.handshake.set_limit(packet_size);
        failpoint!(Opened, self.stream.instance);
        if open {
            self.wake_if_needed();
        }
        Ok(HEADER_SIZE)
    }

    /// Wakes the consumer, if it sleeps and at least half of the buffer waits for it. The caller has closed a packet.
    pub(in crate::channel) fn wake_if_needed(&self) {
        if let Some(wake_word) = self.wake_word.as_ref().filter(|_| self.waiting_percent() >= WAKE_AT) {
            wake_word.wake();
        }
    }

    /// Number of packets that the consumer has released.
    pub(in crate::channel) fn released_packets(&self) -> u64 {
        let closed = self.counters().closed.load(Ordering::Relaxed);
        // R1: Acquire pairs with the Release store in `release`: the consumer has read the slot before the owner writes to it. A consumer in
        // another process may store anything: a number beyond the closed packets is invalid, and frees nothing.
        Some(self.released().load(Ordering::Acquire)).filter(|taken| *taken <= closed).unwrap_or(0)
    }

    /// Returns whether the slot of packet `next` is free.
    fn is_free(&self, next: u64) -> bool {
        self.released_packets() >= self.slots.released_for(next)
    }

    /// Marks the buffer as full, except for records that fit into the `room` of the open packet. That includes a packet for which the time of the
    /// refused event was too late: the next event may be earlier. The slot of packet `next` was not free, and the owner is writing.
    fn mark_full(&self, next: u64, room: usize) {
        let released = self.released().load(Ordering::Relaxed);
        let closed = self.counters().closed.load(Ordering::Relaxed);
        // The consumer may have released the slot since. An invalid position could become valid when a packet is closed.
        let is_full = released < self.slots.released_for(next) && released <= closed;
        if is_full && self.policy == Policy::Discard && self.growth.is_none() {
            self.full_mark.set(released, room + 1, self.packet_size() - HEADER_SIZE);
        } else {
            self.full_mark.clear();
        }
    }

    /// Returns whether a record of this size has no room, because the buffer was full, and the consumer has released nothing since. `false` if that
    /// is unknown. `released` is the position of this buffer's consumer. The owner is not writing.
    #[inline(always)]
    pub(in crate::channel) fn is_still_full_for(&self, size: usize, released: &AtomicU64) -> bool {
        self.full_mark.covers(size, released)
    }

    /// Returns whether the buffer was full when a record was last refused, and the consumer has released nothing since.
    pub(in crate::channel) fn is_still_full(&self) -> bool {
        self.full_mark.is_current(self.released())
    }

    /// Returns whether a packet can be opened after the closed ones. No packet is open.
    pub(in crate::channel) fn has_free_packet(&self) -> bool {
        self.is_free(self.counters().closed.load(Ordering::Relaxed))
    }

    /// Returns whether the slot of packet `next` is free, or becomes free while the owner waits.
    fn has_free_slot(&self, next: u64) -> bool {
        if self.is_free(next) {
            return true;
        }
        let Some(wait_policy) = &self.wait_policy else { return false };
        let (waited, has_room) = wait_policy.wait(self.slots.released_for(next), || self.released_packets());
        self.counters().count_wait(waited);
        has_room
    }

    /// Closes the open packet for the next owner, because the next packet must have that owner's thread id. Returns `false` if this is left to the
    /// consumer, because the flusher is closing the packet, or because the thread ends inside a write.
    pub(in crate::channel) fn close_for_next_owner(&self) -> bool {
        if self.handshake.is_writing() {
            return false;
        }
        self.handshake.enter();
        let may_close = self.handshake.may_switch() != Switch::Busy;
        if may_close {
            if self.has_records() {
                self.close();
            } else {
                self.forget_empty_packet();
            }
        }
        self.handshake.leave();
        may_close
    }

    /// Closes the open packet. The caller is the owner between `enter` and `leave`, or the flusher inside `try_close`.
    pub(super) fn close(&self) {
        let packet = PacketPtr(self.packet.load(Ordering::Relaxed));
        let closing = PacketEnd {
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
        self.records_at_end(number).store(self.records(), Ordering::Relaxed);
        failpoint!(CloseNotCounted, self.stream.instance);
        // R2: Release pairs with the Acquire load in `closed_packets`: the packet is complete before it counts as closed.
        self.counters().closed.store(number + 1, Ordering::Release);
        failpoint!(CloseCounted, self.stream.instance);
    }
}
