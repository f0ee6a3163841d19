//! The commands of a sender, and their numbers.

use super::chunk::{CloseChunk, CreateChunk, RotateStreams};
use super::header::ControlHeader;
use super::index::Index;
use super::session::{CreateSession, Version};
use super::stream::AddStream;
use crate::fields::{Fields, Reader, Short, Writer};
use crate::{DecodeError, Decoded};

/// A command of a sender.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Command<'a> {
    /// 1. The answer contains the handle of the stream.
    AddStream(AddStream),
    /// 2
    CreateSession(CreateSession),
    /// 3: does nothing. LTTng's current senders do not send it.
    StartData,
    /// 5: the first command.
    Version(Version),
    /// 6. There is no answer.
    SendMetadata {
        /// The handle of the metadata stream.
        handle: u64,
        /// Zero bytes to append after the metadata.
        padding: u32,
        /// The metadata to append.
        bytes: &'a [u8],
    },
    /// 7: the stream ends with this packet.
    CloseStream {
        /// The handle of the stream.
        handle: u64,
        /// The number of its last packet; 2^64 - 1 for metadata.
        last: u64,
    },
    /// 8: asks if packets up to this one are not stored yet.
    DataPending {
        /// The handle of the stream.
        handle: u64,
        /// The number of the packet.
        last: u64,
    },
    /// 9: asks for an answer once everything before this command was handled.
    QuiescentControl {
        /// The handle of the metadata stream.
        handle: u64,
    },
    /// 10: begins a series of [`DataPending`](Self::DataPending).
    BeginDataPending {
        /// The relay's number of the session.
        session: u64,
    },
    /// 11: ends it; the answer says if a stream that was not asked about is unfinished.
    EndDataPending {
        /// The relay's number of the session.
        session: u64,
    },
    /// 13
    SendIndex(Index),
    /// 16: the added streams may be announced to viewers.
    StreamsSent,
    /// 17: all metadata is sent again.
    ResetMetadata {
        /// The handle of the metadata stream.
        handle: u64,
        /// The version of the metadata.
        version: u64,
    },
    /// 18
    RotateStreams(RotateStreams),
    /// 19
    CreateChunk(CreateChunk),
    /// 20
    CloseChunk(CloseChunk),
    /// 21
    ChunkExists {
        /// The number of the chunk.
        chunk: u64,
    },
    /// 22
    GetConfiguration {
        /// 0; `lttng-relayd` refuses others.
        flags: u64,
    },
}

impl<'a> Command<'a> {
    /// The number of the command.
    pub const fn number(&self) -> u32 {
        match self {
            Self::AddStream(_) => 1,
            Self::CreateSession(_) => 2,
            Self::StartData => 3,
            Self::Version(_) => 5,
            Self::SendMetadata { .. } => 6,
            Self::CloseStream { .. } => 7,
            Self::DataPending { .. } => 8,
            Self::QuiescentControl { .. } => 9,
            Self::BeginDataPending { .. } => 10,
            Self::EndDataPending { .. } => 11,
            Self::SendIndex(_) => 13,
            Self::StreamsSent => 16,
            Self::ResetMetadata { .. } => 17,
            Self::RotateStreams(_) => 18,
            Self::CreateChunk(_) => 19,
            Self::CloseChunk(_) => 20,
            Self::ChunkExists { .. } => 21,
            Self::GetConfiguration { .. } => 22,
        }
    }

    /// The command at the start of received bytes, with a payload of at most `most` bytes.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] if the payload is too large, too short for its command, or of a command unknown to this protocol.
    pub fn decode(bytes: &'a [u8], minor: u32, most: u64) -> Result<Decoded<Self>, DecodeError> {
        let Some((header, rest)) = bytes.split_first_chunk() else {
            return Ok(Decoded::Needs(ControlHeader::SIZE));
        };
        let header = ControlHeader::decode(header);
        if header.size > most {
            return Err(DecodeError::TooMany { what: "bytes of a command", count: header.size, most });
        }
        let size = header.size as usize;
        match rest.get(..size) {
            None => Ok(Decoded::Needs(ControlHeader::SIZE + size)),
            Some(payload) => Self::from_payload(header.command, payload, minor)
                .map(|it| Decoded::Whole(it, ControlHeader::SIZE + size)),
        }
    }

    /// The command with this number and payload.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] if the payload is too short for the command, or the command is unknown to this protocol.
    pub fn from_payload(number: u32, bytes: &'a [u8], minor: u32) -> Result<Self, DecodeError> {
        let command = Self::read(number, &mut Reader::new(bytes), minor);
        command.unwrap_or(Err(DecodeError::Short { kind: number, size: bytes.len() as u64 }))
    }

    /// A payload that ends too early is a separate case, because only the caller knows its length.
    fn read(number: u32, fields: &mut Reader<'a>, minor: u32) -> Result<Result<Self, DecodeError>, Short> {
        Ok(Ok(match number {
            1 => Self::AddStream(AddStream::read(fields, minor)?),
            2 => Self::CreateSession(CreateSession::read(fields, minor)?),
            3 => Self::StartData,
            5 => Self::Version(Version::read(fields)?),
            6 => Self::SendMetadata { handle: fields.u64()?, padding: fields.u32()?, bytes: fields.rest() },
            7 => Self::CloseStream { handle: fields.u64()?, last: fields.u64()? },
            8 => Self::DataPending { handle: fields.u64()?, last: fields.u64()? },
            9 => Self::QuiescentControl { handle: fields.u64()? },
            10 => Self::BeginDataPending { session: fields.u64()? },
            11 => Self::EndDataPending { session: fields.u64()? },
            13 => Self::SendIndex(Index::read(fields, minor)?),
            16 => Self::StreamsSent,
            17 => Self::ResetMetadata { handle: fields.u64()?, version: fields.u64()? },
            18 => Self::RotateStreams(RotateStreams::read(fields)?),
            19 => Self::CreateChunk(CreateChunk::read(fields)?),
            20 => return CloseChunk::read(fields).map(|chunk| chunk.map(Self::CloseChunk)),
            21 => Self::ChunkExists { chunk: fields.u64()? },
            22 => Self::GetConfiguration { flags: fields.u64()? },
            unknown => return Ok(Err(DecodeError::Command(unknown))),
        }))
    }

    /// Appends the header and the payload. Names that do not fit into the fixed fields of a lower `minor` are cut.
    pub fn encode(&self, minor: u32, out: &mut Vec<u8>) {
        let start = out.len();
        out.resize(start + ControlHeader::SIZE, 0);
        let to = Writer(out);
        match self {
            Self::StartData | Self::StreamsSent => {}
            Self::CloseStream { handle, last: number }
            | Self::DataPending { handle, last: number }
            | Self::ResetMetadata { handle, version: number } => drop(to.u64(*handle).u64(*number)),
            Self::QuiescentControl { handle: number }
            | Self::BeginDataPending { session: number }
            | Self::EndDataPending { session: number }
            | Self::ChunkExists { chunk: number }
            | Self::GetConfiguration { flags: number } => drop(to.u64(*number)),
            Self::SendMetadata { handle, padding, bytes } => drop(to.u64(*handle).u32(*padding).bytes(bytes)),
            Self::AddStream(stream) => stream.write(to, minor),
            Self::CreateSession(session) => session.write(to, minor),
            Self::Version(version) => drop(version.write(to)),
            Self::SendIndex(index) => index.write(to, minor),
            Self::RotateStreams(rotation) => rotation.write(to),
            Self::CreateChunk(chunk) => chunk.write(to),
            Self::CloseChunk(chunk) => chunk.write(to),
        }
        let size = (out.len() - start - ControlHeader::SIZE) as u64;
        let header = ControlHeader { size, command: self.number(), ..ControlHeader::default() };
        out[start..start + ControlHeader::SIZE].copy_from_slice(&header.encode());
    }
}
