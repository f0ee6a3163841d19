//! The consumer's side of a buffer: closes the packets of idle owners, reads closed packets, and releases their slots.

use super::super::packet_header::PacketHeader;
use super::super::slots::sequence_of;
use super::Buffer;
use std::ops::Range;
use std::ptr::null_mut;
use std::sync::atomic::Ordering;

impl Buffer {
    /// Closes the open packet if it has a record. The owner is outside any event, or has ended.
    pub(in crate::channel) fn flush(&self) {
        self.handshake.reset();
        if self.has_records() {
            self.close();
        } else {
            self.forget_empty_packet();
        }
    }

    /// Drops an open packet without records: the next one gets its number. The caller must be allowed to close packets.
    pub(in crate::channel) fn forget_empty_packet(&self) {
        self.handshake.clear_limit();
        self.packet.store(null_mut(), Ordering::Relaxed);
        self.used.store(0, Ordering::Relaxed);
    }

    /// Returns whether the open packet has a record and was opened before `before`.
    pub(in crate::channel) fn is_open_since(&self, before: u64) -> bool {
        self.has_records() && self.opened_at.load(Ordering::Relaxed) < before
    }

    /// Requests that the open packet be closed. `thread::fence_owners` and [`try_flush`](Self::try_flush) must follow.
    pub(in crate::channel) fn request_flush(&self) {
        self.handshake.request();
        failpoint!(FlushRequested, self.stream.instance);
    }

    /// Closes the requested packet, unless the owner has closed it. Returns `false` if the owner is writing.
    pub(in crate::channel) fn try_flush(&self) -> bool {
        failpoint!(FlushFenced, self.stream.instance);
        // If the owner is writing, it closes the packet at its next reserve, or a later request does.
        let is_closed = self.handshake.try_close(|| {
            failpoint!(FlushTaken, self.stream.instance);
            if self.has_records() {
                self.close();
            }
            failpoint!(FlushClosed, self.stream.instance);
        });
        failpoint!(FlushDone, self.stream.instance);
        is_closed
    }

    /// The numbers of the packets that are closed and not released. Under overwrite, the oldest ones may have been overwritten already.
    pub(in crate::channel) fn closed_packets(&self) -> Range<u64> {
        // R2: pairs with the Release store in `close`.
        let closed = self.counters().closed.load(Ordering::Acquire);
        self.slots.waiting(self.released().load(Ordering::Relaxed), closed)
    }

    /// The closed and unreleased part of the buffer, in percent.
    pub(in crate::channel) fn waiting_percent(&self) -> u32 {
        self.slots.percent(&self.closed_packets())
    }

    /// The bytes of a closed packet, and the numbers of records in the stream before and after it.
    ///
    /// # Safety
    ///
    /// `number` is in `closed_packets`. For as long as the bytes are used, the packet is not released (discard, wait), or the owner is outside
    /// any event (overwrite).
    pub(in crate::channel) unsafe fn packet(&self, number: u64) -> (&[u8], u64, u64) {
        let after = self.records_at_end(number).load(Ordering::Relaxed);
        let packet = self.packet_at(number);
        // SAFETY: inside the memory that `new` was given; a closed packet is not written while the caller's condition holds. Its content is
        // limited to the slot, whatever the memory contains.
        unsafe {
            let content = packet.content().min(self.packet_size());
            (std::slice::from_raw_parts(packet.0, content), packet.events_before(), after)
        }
    }

    /// Stores the checksum of a closed packet in its header.
    ///
    /// # Safety
    ///
    /// As for [`packet`](Self::packet), whose bytes are not in use.
    pub(in crate::channel) unsafe fn put_checksum(&self, number: u64, sum: u32) {
        // SAFETY: inside the memory that `new` was given; the packet is closed, and its owner does not write to it.
        unsafe { self.packet_at(number).put_checksum(sum) }
    }

    /// Releases the slots of all packets before `end` to the owner.
    pub(in crate::channel) fn release(&self, end: u64) {
        // R1: pairs with the Acquire load in `released_packets`.
        self.released().store(end, Ordering::Release);
    }

    /// The header of the empty packet that ends the stream, with the final counts. The owner is outside any event, or has ended.
    pub(in crate::channel) fn last_packet(&self, time: u64) -> PacketHeader {
        PacketHeader {
            sequence: sequence_of(self.counters().closed.load(Ordering::Relaxed)),
            discarded: self.counters().discarded.get(),
            events_before: self.records(),
            ..PacketHeader::empty(self.stream, time.max(self.last_time.load(Ordering::Relaxed)))
        }
    }
}
