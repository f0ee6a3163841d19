//! `SEND_INDEX`, and the entries of index files, which have the same fields.

use super::MINOR_WITH_LONG_INDEX;
use super::fields::payload;
use crate::Malformed;
use crate::bytes::Fields;

/// `SEND_INDEX`: describes a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Index {
    /// The handle of the stream.
    pub handle: u64,
    /// The number of the packet, as in its [`DataHeader`](super::DataHeader).
    pub sequence: u64,
    /// The size of the packet with padding, in **bits**. 0: this is a beacon, which promises that no event of the stream before
    /// [`end`](Self::end) will follow.
    pub packet_size: u64,
    /// The size of the contents, in **bits**.
    pub content_size: u64,
    /// The time at its start, in cycles of the trace's clock.
    pub begin: u64,
    /// The time at its end, in cycles.
    pub end: u64,
    /// Events that the tracer has discarded, a running total.
    pub discarded: u64,
    /// The stream class in the metadata (`stream_id`); not the handle.
    pub stream_class: u64,
    /// The stream's number within its class. From minor 8 on; 2^64 - 1 if unknown.
    pub stream_instance: u64,
    /// The tracer's number of the packet. From minor 8 on; 2^64 - 1 if unknown.
    pub packet_number: u64,
}

impl Index {
    /// Sizes in bytes, before minor 8 and from it on.
    const SHORT: usize = 64;
    const LONG: usize = 80;

    /// Whether this is a beacon rather than the index of a packet.
    pub const fn is_beacon(&self) -> bool {
        self.packet_size == 0
    }

    pub(super) fn decode(bytes: &[u8], minor: u32, kind: u32) -> Result<Self, Malformed> {
        let is_long = minor >= MINOR_WITH_LONG_INDEX;
        let fields = payload(bytes, if is_long { Self::LONG } else { Self::SHORT }, kind)?;
        let (stream_instance, packet_number) =
            if is_long { (fields.u64(64), fields.u64(72)) } else { (u64::MAX, u64::MAX) };
        Ok(Self {
            handle: fields.u64(0),
            sequence: fields.u64(8),
            packet_size: fields.u64(16),
            content_size: fields.u64(24),
            begin: fields.u64(32),
            end: fields.u64(40),
            discarded: fields.u64(48),
            stream_class: fields.u64(56),
            stream_instance,
            packet_number,
        })
    }

    pub(super) fn encode(&self, minor: u32, out: &mut Vec<u8>) {
        let long: &[u64] =
            if minor >= MINOR_WITH_LONG_INDEX { &[self.stream_instance, self.packet_number] } else { &[] };
        for number in [self.handle, self.sequence].iter().chain(&self.described()).chain(long) {
            out.extend_from_slice(&number.to_be_bytes());
        }
    }

    const fn described(&self) -> [u64; 6] {
        [self.packet_size, self.content_size, self.begin, self.end, self.discarded, self.stream_class]
    }
}

/// The format of index files (`index/CHANNEL.idx`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexFile {
    /// Whether entries have the instance of the stream and the number of the packet, as files of version 1.1 do. Those of 1.0 do not.
    pub is_long: bool,
}

impl IndexFile {
    /// The size of the header in bytes.
    pub const HEADER: usize = 16;
    /// At the beginning of each file.
    pub const MAGIC: u32 = 0xC1F1_DCC1;

    /// The format for senders of this minor number.
    pub const fn of_minor(minor: u32) -> Self {
        Self { is_long: minor >= MINOR_WITH_LONG_INDEX }
    }

    /// The size of an entry in bytes.
    pub const fn entry_size(self) -> usize {
        if self.is_long { 72 } else { 56 }
    }

    /// The header of a file.
    pub fn header(self) -> [u8; Self::HEADER] {
        let mut out = [0; Self::HEADER];
        let words = [Self::MAGIC, 1, u32::from(self.is_long), self.entry_size() as u32];
        for (place, word) in out.chunks_exact_mut(4).zip(words) {
            place.copy_from_slice(&word.to_be_bytes());
        }
        out
    }

    /// The format of a file with this header; `None` if it is not that of an index file.
    pub fn of_header(header: &[u8; Self::HEADER]) -> Option<Self> {
        [true, false].into_iter().map(|is_long| Self { is_long }).find(|format| format.header() == *header)
    }

    /// Appends the entry of the packet at this offset of the stream file.
    pub fn put_entry(self, offset: u64, index: &Index, out: &mut Vec<u8>) {
        let long: &[u64] = if self.is_long { &[index.stream_instance, index.packet_number] } else { &[] };
        for number in [offset].iter().chain(&index.described()).chain(long) {
            out.extend_from_slice(&number.to_be_bytes());
        }
    }

    /// The offset of a packet and its index, without handle and sequence; `None` if `bytes` are fewer than an entry.
    pub fn entry(self, bytes: &[u8]) -> Option<(u64, Index)> {
        let fields = Fields::of(bytes, self.entry_size())?;
        let (stream_instance, packet_number) =
            if self.is_long { (fields.u64(56), fields.u64(64)) } else { (u64::MAX, u64::MAX) };
        let index = Index {
            handle: 0,
            sequence: 0,
            packet_size: fields.u64(8),
            content_size: fields.u64(16),
            begin: fields.u64(24),
            end: fields.u64(32),
            discarded: fields.u64(40),
            stream_class: fields.u64(48),
            stream_instance,
            packet_number,
        };
        Some((fields.u64(0), index))
    }
}
