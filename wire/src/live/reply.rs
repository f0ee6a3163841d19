//! Replies about one stream (indexes, packets and metadata), and replies that consist of a status.

use super::{IndexStatus, MetadataStatus, PacketStatus, Status};
use crate::fields::{Fields, Reader, Short, Writer, layout};
use crate::{DecodeError, Decoded};

const INDEX_SIZE: usize = 64;
/// Size of the header before packet bytes, and before metadata.
const HEAD: usize = 12;

/// The index of a packet, or the reason why there is none. If [`status`](Self::status) is not `Ok`, the other fields are 0, except
/// `timestamp_end` and `stream_class` of `Inactive`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Index {
    /// The offset of the packet in its stream, in bytes.
    pub offset: u64,
    /// Its size with padding, in bits.
    pub packet_bits: u64,
    /// Its size without padding, in bits.
    pub content_bits: u64,
    /// Its begin time, in cycles of the trace's clock.
    pub begin: u64,
    /// Its end time, in cycles; for `Inactive`, the time before which no packet of the stream begins.
    pub end: u64,
    /// The stream's counter of discarded events.
    pub discarded: u64,
    /// The id of the stream's class in the metadata. It must be the same in each reply of a stream, or LTTng's viewers abort.
    pub stream_class: u64,
    /// The status of the reply.
    pub status: IndexStatus,
    /// [`NEW_METADATA`](super::NEW_METADATA) and [`NEW_STREAM`](super::NEW_STREAM); LTTng's viewers check them only if the status is `Ok`.
    pub flags: u32,
}

/// Bytes of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketBytes<'a> {
    /// The result of the request. Only `Ok` is followed by bytes, at least one.
    pub status: PacketStatus,
    /// [`NEW_METADATA`](super::NEW_METADATA) and [`NEW_STREAM`](super::NEW_STREAM).
    pub flags: u32,
    /// The bytes: never more than were requested.
    pub bytes: &'a [u8],
}

/// New metadata: complete packets, or text that ends after a declaration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetadataBytes<'a> {
    /// The result of the request. Only `Ok` is followed by bytes, at least one.
    pub status: MetadataStatus,
    /// The bytes.
    pub bytes: &'a [u8],
}

/// The reply to [`Request::CreateSession`](super::Request::CreateSession): true if the session object was created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionCreated(pub bool);

/// The reply to [`Request::Detach`](super::Request::Detach): true if the session was attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionDetached(pub bool);

/// The reply to [`Request::Clock`](super::Request::Clock), in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockOffset {
    /// Added to a time of the trace to get a time since the epoch, by the collector's clock.
    pub offset: i64,
    /// The error bound of the offset; [`NO_BOUND`](crate::stream::NO_BOUND) if unknown.
    pub bound: u64,
}

/// A random number, or an authentication code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Secret(pub [u8; 32]);

layout!(ClockOffset { offset, bound });

impl ClockOffset {
    /// Appends the reply.
    pub fn encode(&self, out: &mut Vec<u8>) {
        self.write(Writer(out));
    }

    /// Decodes the reply.
    pub fn decode(bytes: &[u8]) -> Decoded<Self> {
        Decoded::read(bytes, 16, Self::read)
    }
}

impl Secret {
    /// Appends the reply.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.0);
    }

    /// Decodes the reply.
    ///
    /// # Errors
    ///
    /// None: any bytes are a valid reply.
    pub fn decode(bytes: &[u8]) -> Result<Decoded<Self>, DecodeError> {
        Ok(Decoded::read(bytes, 32, |fields| fields.array().map(Self)))
    }
}

impl Index {
    /// A reply with only a status: `Retry`, `Hup` or `Error`.
    pub const fn only(status: IndexStatus) -> Self {
        let (offset, packet_bits, content_bits, begin, end, discarded) = (0, 0, 0, 0, 0, 0);
        Self { offset, packet_bits, content_bits, begin, end, discarded, stream_class: 0, status, flags: 0 }
    }

    /// The stream is idle: no packet of it will begin before `end`.
    pub const fn inactive(end: u64, stream_class: u64) -> Self {
        Self { end, stream_class, ..Self::only(IndexStatus::Inactive) }
    }

    /// Appends the reply.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let to = Writer(out).u64(self.offset).u64(self.packet_bits).u64(self.content_bits).u64(self.begin);
        let to = to.u64(self.end).u64(self.discarded).u64(self.stream_class);
        to.u32(self.status.number()).u32(self.flags);
    }

    /// Decodes a reply.
    ///
    /// # Errors
    ///
    /// [`DecodeError::Number`] for an unknown status.
    pub fn decode(bytes: &[u8]) -> Result<Decoded<Self>, DecodeError> {
        Decoded::read(bytes, INDEX_SIZE, Self::read).transpose()
    }

    fn read(fields: &mut Reader<'_>) -> Result<Result<Self, DecodeError>, Short> {
        let (offset, packet_bits, content_bits) = (fields.u64()?, fields.u64()?, fields.u64()?);
        let (begin, end, discarded, stream_class) = (fields.u64()?, fields.u64()?, fields.u64()?, fields.u64()?);
        let (status, flags) = (IndexStatus::of(fields.u32()?), fields.u32()?);
        Ok(status.map(|status| Self {
            offset,
            packet_bits,
            content_bits,
            begin,
            end,
            discarded,
            stream_class,
            status,
            flags,
        }))
    }
}

impl<'a> PacketBytes<'a> {
    /// A reply without bytes.
    pub const fn only(status: PacketStatus, flags: u32) -> Self {
        Self { status, flags, bytes: &[] }
    }

    /// Appends the reply.
    pub fn encode(&self, out: &mut Vec<u8>) {
        Writer(out).u32(self.status.number()).u32(self.bytes.len() as u32).u32(self.flags).bytes(self.bytes);
    }

    /// Decodes a reply to a request for `requested` bytes.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] if it has more bytes, or an unknown status.
    pub fn decode(bytes: &'a [u8], requested: u32) -> Result<Decoded<Self>, DecodeError> {
        let mut fields = Reader::new(bytes);
        let (Ok(status), Ok(length), Ok(flags)) = (fields.u32(), fields.u32(), fields.u32()) else {
            return Ok(Decoded::Needs(HEAD));
        };
        let status = PacketStatus::of(status)?;
        // Another status has no bytes, whatever the length field contains.
        let length = if status == PacketStatus::Ok { length } else { 0 };
        Ok(content(bytes, length.into(), requested.into(), "bytes of a packet")?.map(|bytes| Self {
            status,
            flags,
            bytes,
        }))
    }
}

impl<'a> MetadataBytes<'a> {
    /// A reply without bytes.
    pub const fn only(status: MetadataStatus) -> Self {
        Self { status, bytes: &[] }
    }

    /// Appends the reply.
    pub fn encode(&self, out: &mut Vec<u8>) {
        Writer(out).u64(self.bytes.len() as u64).u32(self.status.number()).bytes(self.bytes);
    }

    /// Decodes a reply with at most `most` bytes of metadata.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] if it announces more than that, or has an unknown status.
    pub fn decode(bytes: &'a [u8], most: u64) -> Result<Decoded<Self>, DecodeError> {
        let mut fields = Reader::new(bytes);
        let (Ok(length), Ok(status)) = (fields.u64(), fields.u32()) else {
            return Ok(Decoded::Needs(HEAD));
        };
        let status = MetadataStatus::of(status)?;
        let length = if status == MetadataStatus::Ok { length } else { 0 };
        Ok(content(bytes, length, most, "bytes of metadata")?.map(|bytes| Self { status, bytes }))
    }
}

/// The `length` bytes after the header.
fn content<'a>(bytes: &'a [u8], length: u64, most: u64, what: &'static str) -> Result<Decoded<&'a [u8]>, DecodeError> {
    if length > most {
        return Err(DecodeError::TooMany { what, count: length, most });
    }
    let size = HEAD + length as usize;
    Ok(bytes.get(HEAD..size).map_or(Decoded::Needs(size), |content| Decoded::Whole(content, size)))
}

impl SessionCreated {
    /// Appends the reply.
    pub fn encode(self, out: &mut Vec<u8>) {
        status_word(self.0, out);
    }

    /// Decodes a reply.
    pub fn decode(bytes: &[u8]) -> Decoded<Self> {
        is_success(bytes).map(Self)
    }
}

impl SessionDetached {
    /// Appends the reply.
    pub fn encode(self, out: &mut Vec<u8>) {
        status_word(self.0, out);
    }

    /// Decodes a reply.
    pub fn decode(bytes: &[u8]) -> Decoded<Self> {
        is_success(bytes).map(Self)
    }
}

fn status_word(is_success: bool, out: &mut Vec<u8>) {
    Writer(out).u32(if is_success { 1 } else { 2 });
}

fn is_success(bytes: &[u8]) -> Decoded<bool> {
    Decoded::read(bytes, 4, |fields| Ok(fields.u32()? == 1))
}
