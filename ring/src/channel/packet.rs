//! The stores by which the owner of a ring writes the [header](super::packet_header) of a packet, so that readers in other processes may
//! copy it at any time. The store of `content_size` commits a record.

use super::packet_header::{
    CONTENT_SIZE, EVENTS_BEFORE, EVENTS_DISCARDED, HEADER_SIZE, PACKET_MAGIC, PACKET_SIZE, PacketHeader, SEQ_NUM, TID,
    TIMESTAMP_BEGIN, TIMESTAMP_END, bits,
};
use crate::primitive::{AtomicU64, Ordering, fence, word_at};
use std::ops::RangeInclusive;

/// The data that are known when a packet is closed.
#[derive(Clone, Copy, Debug)]
pub(super) struct PacketEnd {
    pub(super) time: u64,
    pub(super) content: usize,
    pub(super) events_discarded: u64,
}

/// A pointer to a packet's slot in a ring: at least [`HEADER_SIZE`] bytes, aligned to 8.
#[derive(Clone, Copy, Debug)]
pub(super) struct PacketPtr(pub(super) *mut u8);

impl PacketPtr {
    /// # Safety
    ///
    /// `offset` is inside the header and a multiple of 8, and the slot is valid.
    unsafe fn word<'a>(self, offset: usize) -> &'a AtomicU64 {
        // SAFETY: an aligned u64 inside the slot. Other threads access it as an atomic too, or read it after an Acquire load of the number of
        // closed packets.
        unsafe { word_at(self.0, offset) }
    }

    /// Writes a complete header, of a packet that has no records and the size of its slot.
    ///
    /// # Safety
    ///
    /// The slot is valid and only the caller writes to it.
    pub(super) unsafe fn open(self, header: &PacketHeader) {
        let bytes = header.bytes();
        let words: [u64; HEADER_SIZE / 8] =
            std::array::from_fn(|word| u64::from_le_bytes(std::array::from_fn(|byte| bytes[8 * word + byte])));
        let without_magic = words[0] & !u64::from(u32::MAX);
        // SAFETY: only the caller writes to the slot; all offsets are inside the header and multiples of 8.
        unsafe {
            let store = |offsets: RangeInclusive<usize>| {
                offsets.step_by(8).for_each(|offset| self.store(offset, words[offset / 8]));
            };
            // C2, for readers in other processes, which compare the magic and the number before and after they copy: the magic is cleared
            // first, then the content, and the magic is stored last.
            self.store(0, without_magic);
            failpoint!(OpenMagicGone, header.stream.instance);
            self.commit(HEADER_SIZE);
            fence(Ordering::Release);
            failpoint!(OpenContentReset, header.stream.instance);
            store(8..=TIMESTAMP_BEGIN - 8);
            failpoint!(OpenStreamWritten, header.stream.instance);
            store(TIMESTAMP_BEGIN..=TIMESTAMP_END);
            store(PACKET_SIZE..=SEQ_NUM);
            failpoint!(OpenNumberWritten, header.stream.instance);
            store(EVENTS_DISCARDED..=EVENTS_BEFORE);
            failpoint!(OpenHeaderWritten, header.stream.instance);
            // C2: pairs with the reader's first load of the magic.
            self.word(0).store((without_magic | u64::from(PACKET_MAGIC)).to_le(), Ordering::Release);
            failpoint!(OpenMagicWritten, header.stream.instance);
        }
    }

    /// Commits the first `content` bytes of the packet, header included.
    #[inline(always)]
    pub(super) fn commit(self, content: usize) {
        // SAFETY: CONTENT_SIZE is an aligned word of the header.
        // C1: Release pairs with the Acquire load in `content`, and with readers in other processes: the bytes of the record are stored
        // before the size that covers them.
        unsafe { self.word(CONTENT_SIZE) }.store(bits(content).to_le(), Ordering::Release);
    }

    /// Completes the header. The packet's size becomes the size of its content, so that no padding is written out.
    ///
    /// # Safety
    ///
    /// The slot is valid and only the caller writes to it.
    pub(super) unsafe fn close(self, closing: PacketEnd) {
        // SAFETY: only the caller writes to the slot; the offsets are aligned words of the header.
        unsafe {
            self.store(TIMESTAMP_END, closing.time);
            failpoint!(CloseTimeWritten, self.instance());
            self.store(PACKET_SIZE, bits(closing.content));
            failpoint!(CloseSizeWritten, self.instance());
            self.store(EVENTS_DISCARDED, closing.events_discarded);
            failpoint!(CloseHeaderWritten, self.instance());
        }
    }

    /// Stores the checksum, next to the tid.
    ///
    /// # Safety
    ///
    /// The slot is valid, and the packet closed; only the caller writes to it.
    pub(super) unsafe fn put_checksum(self, sum: u32) {
        // SAFETY: only the caller writes to the slot; the word is in the header. Relaxed: the owner reuses the slot after its release (R1).
        unsafe {
            let tid = u64::from_le(self.word(TID).load(Ordering::Relaxed)) as u32;
            self.store(TID, u64::from(tid) | u64::from(sum) << 32);
        }
    }

    /// # Safety
    ///
    /// As for `word`.
    unsafe fn store(self, offset: usize, value: u64) {
        // SAFETY: the caller's promise. Relaxed: the commit (C1) or the count of closed packets (R2) publishes the header.
        unsafe { self.word(offset) }.store(value.to_le(), Ordering::Relaxed);
    }

    /// The number of content bytes, header included.
    ///
    /// # Safety
    ///
    /// The slot is valid and was opened.
    pub(super) unsafe fn content(self) -> usize {
        // SAFETY: an aligned word of the header.
        // C1: Acquire pairs with `commit`.
        let bits = u64::from_le(unsafe { self.word(CONTENT_SIZE) }.load(Ordering::Acquire));
        (bits / 8) as usize
    }

    /// The number of records in the stream before this packet.
    ///
    /// # Safety
    ///
    /// The slot is valid and was opened.
    pub(super) unsafe fn events_before(self) -> u64 {
        // SAFETY: an aligned word of the header.
        u64::from_le(unsafe { self.word(EVENTS_BEFORE) }.load(Ordering::Relaxed))
    }

    /// The stream's instance, for failpoints.
    ///
    /// # Safety
    ///
    /// The slot is valid and was opened.
    #[cfg(feature = "failpoints")]
    pub(super) unsafe fn instance(self) -> u64 {
        // SAFETY: an aligned word of the header.
        u64::from_le(unsafe { self.word(super::packet_header::INSTANCE) }.load(Ordering::Relaxed))
    }
}
