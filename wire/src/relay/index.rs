//! `SEND_INDEX`, and the entries of index files, which have the same fields.

use super::MINOR_WITH_LONG_INDEX;
use crate::fields::{Reader, Short, Writer, to_array};
use tracepoint_ring::channel::PacketHeader;

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
    /// The time at its begin, in cycles of the trace's clock.
    pub begin: u64,
    /// The time at its end, in cycles.
    pub end: u64,
    /// Number of events discarded by the tracer, as a running total.
    pub discarded: u64,
    /// The stream class in the metadata (`stream_id`); not the handle.
    pub stream_class: u64,
    /// The stream's number within its class. From minor 8 on; 2^64 - 1 if unknown.
    pub stream_instance: u64,
    /// The tracer's number of the packet. From minor 8 on; 2^64 - 1 if unknown.
    pub packet_number: u64,
}

impl Index {
    /// The index of a packet with this header, in the stream with this handle.
    pub fn of(handle: u64, header: &PacketHeader) -> Self {
        Self {
            handle,
            sequence: header.sequence,
            packet_size: header.packet_bits,
            content_size: header.content_bits,
            begin: header.begin,
            end: header.end,
            discarded: header.discarded,
            stream_class: header.stream.class.into(),
            stream_instance: header.stream.instance,
            packet_number: header.sequence,
        }
    }

    /// True for a beacon, which is not the index of a packet.
    pub const fn is_beacon(&self) -> bool {
        self.packet_size == 0
    }

    pub(super) fn read(fields: &mut Reader<'_>, minor: u32) -> Result<Self, Short> {
        let (handle, sequence) = (fields.u64()?, fields.u64()?);
        Ok(Self { handle, sequence, ..Self::described(fields, minor >= MINOR_WITH_LONG_INDEX)? })
    }

    pub(super) fn write(&self, to: Writer<'_>, minor: u32) {
        self.describe(to.u64(self.handle).u64(self.sequence), minor >= MINOR_WITH_LONG_INDEX);
    }

    /// The fields after handle and sequence, or after the offset in a file.
    fn described(fields: &mut Reader<'_>, is_long: bool) -> Result<Self, Short> {
        Ok(Self {
            handle: 0,
            sequence: 0,
            packet_size: fields.u64()?,
            content_size: fields.u64()?,
            begin: fields.u64()?,
            end: fields.u64()?,
            discarded: fields.u64()?,
            stream_class: fields.u64()?,
            stream_instance: if is_long { fields.u64()? } else { u64::MAX },
            packet_number: if is_long { fields.u64()? } else { u64::MAX },
        })
    }

    fn describe(&self, to: Writer<'_>, is_long: bool) {
        let to = to.u64(self.packet_size).u64(self.content_size).u64(self.begin).u64(self.end);
        let to = to.u64(self.discarded).u64(self.stream_class);
        if is_long {
            to.u64(self.stream_instance).u64(self.packet_number);
        }
    }
}

/// The format of index files (`index/CHANNEL.idx`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexFile {
    /// True if entries contain the instance of the stream and the number of the packet, as in files of version 1.1. Those of 1.0 do not.
    pub is_long: bool,
}

impl IndexFile {
    /// The size of the header in bytes.
    pub const HEADER: usize = 16;
    /// The magic number at the beginning of each file.
    pub const MAGIC: u32 = 0xC1F1_DCC1;

    /// The format for senders of this minor version.
    pub const fn of_minor(minor: u32) -> Self {
        Self { is_long: minor >= MINOR_WITH_LONG_INDEX }
    }

    /// The size of an entry in bytes.
    pub const fn entry_size(self) -> usize {
        if self.is_long { 72 } else { 56 }
    }

    /// The header of a file.
    pub fn header(self) -> [u8; Self::HEADER] {
        to_array(|to| to.u32(Self::MAGIC).u32(1).u32(self.is_long.into()).u32(self.entry_size() as u32))
    }

    /// The format of a file with this header; `None` if it is not an index file.
    pub fn of_header(header: &[u8; Self::HEADER]) -> Option<Self> {
        [true, false].into_iter().map(|is_long| Self { is_long }).find(|format| format.header() == *header)
    }

    /// Appends the entry of the packet at this offset of the stream file.
    pub fn put_entry(self, offset: u64, index: &Index, out: &mut Vec<u8>) {
        index.describe(Writer(out).u64(offset), self.is_long);
    }

    /// The offset of a packet and its index, without handle and sequence; `None` if `bytes` are fewer than an entry.
    pub fn entry(self, bytes: &[u8]) -> Option<(u64, Index)> {
        let mut fields = Reader::new(bytes);
        Some((fields.u64().ok()?, Index::described(&mut fields, self.is_long).ok()?))
    }
}
