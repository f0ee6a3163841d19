//! The header of a packet. A packet is a CTF 1.8 packet as it is in memory, so that sinks write it without conversion.
//!
//! | offset | field |
//! |---|---|
//! | 0 | magic u32, uuid 16 bytes, stream class id u32, stream instance id u64 |
//! | 32 | `timestamp_begin`, `timestamp_end`, `content_size`, `packet_size`, `packet_seq_num`, `events_discarded` (u64 each) |
//! | 80 | tid u32 |
//! | 84 | checksum u32, in the alignment before the next field: 0 until the packet [leaves its ring](super::OpenChannel::checksum_with) |
//! | 88 | `events_before` u64: records written to this stream before this packet |
//! | 96 | records |
//!
//! All little-endian. Times are in nanoseconds, sizes in bits. The store of `content_size` commits a record.

use crate::primitive::{AtomicU64, Ordering, fence, word_at};

/// The first four bytes of a packet.
pub const PACKET_MAGIC: u32 = 0xC1FC_1FC1;
/// The size of the header in bytes, which is the offset of the first record.
pub const HEADER_SIZE: usize = 96;

#[cfg(feature = "failpoints")]
const INSTANCE: usize = 24;
const TIMESTAMP_BEGIN: usize = 32;
const TIMESTAMP_END: usize = 40;
const CONTENT_SIZE: usize = 48;
const PACKET_SIZE: usize = 56;
const SEQ_NUM: usize = 64;
const EVENTS_DISCARDED: usize = 72;
const TID: usize = 80;
/// The offset of the checksum, four bytes.
pub const CHECKSUM: usize = 84;
const EVENTS_BEFORE: usize = 88;

/// What all packets of a stream have in common.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stream {
    pub(super) uuid: [u8; 16],
    pub(super) class: u32,
    pub(super) instance: u64,
}

/// What is known when a packet is opened.
#[derive(Clone, Copy, Debug)]
pub(super) struct Opening {
    pub(super) time: u64,
    pub(super) seq_num: u64,
    pub(super) tid: u32,
    pub(super) events_before: u64,
    /// The size of the packet's slot, in bytes.
    pub(super) size: usize,
}

/// What is known when a packet is closed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Closing {
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

    /// Writes a whole header; the packet is empty.
    ///
    /// # Safety
    ///
    /// The slot is valid and only the caller writes to it.
    pub(super) unsafe fn open(self, stream: &Stream, opening: Opening) {
        let mut head = [0u8; TIMESTAMP_BEGIN];
        head[4..20].copy_from_slice(&stream.uuid);
        head[20..24].copy_from_slice(&stream.class.to_le_bytes());
        head[24..].copy_from_slice(&stream.instance.to_le_bytes());
        let head: [u64; TIMESTAMP_BEGIN / 8] =
            std::array::from_fn(|word| u64::from_le_bytes(std::array::from_fn(|byte| head[8 * word + byte])));
        // SAFETY: only the caller writes to the slot; all offsets are inside the header and multiples of 8.
        unsafe {
            // C2, for readers in other processes, which compare the magic and the number before and after they copy: the magic is cleared
            // first, then the content, and the magic is stored last.
            self.store(0, head[0]);
            failpoint!(OpenMagicGone, opened_instance(stream, opening.size));
            self.commit(HEADER_SIZE);
            fence(Ordering::Release);
            failpoint!(OpenContentReset, opened_instance(stream, opening.size));
            for (offset, word) in (0..).step_by(8).zip(head).skip(1) {
                self.store(offset, word);
            }
            failpoint!(OpenStreamWritten, opened_instance(stream, opening.size));
            self.store(TIMESTAMP_BEGIN, opening.time);
            self.store(TIMESTAMP_END, opening.time);
            self.store(PACKET_SIZE, bits(opening.size));
            self.store(SEQ_NUM, opening.seq_num);
            failpoint!(OpenNumberWritten, opened_instance(stream, opening.size));
            self.store(EVENTS_DISCARDED, 0);
            self.store(TID, u64::from(opening.tid));
            self.store(EVENTS_BEFORE, opening.events_before);
            failpoint!(OpenHeaderWritten, opened_instance(stream, opening.size));
            // C2: pairs with the reader's first load of the magic.
            self.word(0).store((head[0] | u64::from(PACKET_MAGIC)).to_le(), Ordering::Release);
            failpoint!(OpenMagicWritten, opened_instance(stream, opening.size));
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

    /// Completes the header. The packet's size becomes that of its content, so that no padding is written out.
    ///
    /// # Safety
    ///
    /// The slot is valid and only the caller writes to it.
    pub(super) unsafe fn close(self, closing: Closing) {
        // SAFETY: only the caller writes to the slot; the offsets are aligned words of the header.
        unsafe {
            self.store(TIMESTAMP_END, closing.time);
            failpoint!(CloseTimeWritten, self.closed_instance(closing.content));
            self.store(PACKET_SIZE, bits(closing.content));
            failpoint!(CloseSizeWritten, self.closed_instance(closing.content));
            self.store(EVENTS_DISCARDED, closing.events_discarded);
            failpoint!(CloseHeaderWritten, self.closed_instance(closing.content));
        }
    }

    /// Stores the checksum, beside the tid.
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
    /// As `word`.
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

    /// The stream's instance.
    ///
    /// # Safety
    ///
    /// The slot is valid and was opened.
    #[cfg(feature = "failpoints")]
    pub(super) unsafe fn instance(self) -> u64 {
        // SAFETY: an aligned word of the header.
        u64::from_le(unsafe { self.word(INSTANCE) }.load(Ordering::Relaxed))
    }

    /// The instance for the failpoints of `close`: the stream's, or [`NO_STREAM`] for a packet without records, which is in no ring.
    ///
    /// # Safety
    ///
    /// As [`instance`](Self::instance).
    #[cfg(feature = "failpoints")]
    unsafe fn closed_instance(self, content: usize) -> u64 {
        // SAFETY: the caller's promise.
        if content > HEADER_SIZE { unsafe { self.instance() } } else { NO_STREAM }
    }
}

/// The instance for the failpoints of a packet that is not in a ring. No stream has it.
#[cfg(feature = "failpoints")]
const NO_STREAM: u64 = u64::MAX;

/// The instance for the failpoints of `open`: the stream's, or [`NO_STREAM`] for a packet without room for records, which is in no ring.
#[cfg(feature = "failpoints")]
const fn opened_instance(stream: &Stream, size: usize) -> u64 {
    if size > HEADER_SIZE { stream.instance } else { NO_STREAM }
}

const fn bits(bytes: usize) -> u64 {
    bytes as u64 * 8
}

/// A packet without records, for the beginning and the end of a stream. It has no checksum.
pub(super) fn empty_packet(stream: &Stream, opening: Opening, events_discarded: u64) -> Vec<u8> {
    let mut words = [0u64; HEADER_SIZE / 8];
    let packet = PacketPtr(words.as_mut_ptr().cast());
    let closing = Closing { time: opening.time, content: HEADER_SIZE, events_discarded };
    // SAFETY: `words` is aligned, as large as a header, and local.
    unsafe {
        packet.open(stream, opening);
        packet.close(closing);
    }
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}
