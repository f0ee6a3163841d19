//! The commands of a sender, and their numbers.

use super::chunk::{CloseChunk, CreateChunk, RotateStreams};
use super::fields::payload;
use super::header::ControlHeader;
use super::index::Index;
use super::session::{CreateSession, Version};
use super::stream::AddStream;
use crate::{Decoded, Malformed};

/// A command of a sender.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Command<'a> {
    /// 1. The answer has the handle of the stream.
    AddStream(AddStream),
    /// 2
    CreateSession(CreateSession),
    /// 3: does nothing. The stock sender does not send it any more.
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
    /// 8: whether packets up to this one are not stored yet.
    DataPending {
        /// The handle of the stream.
        handle: u64,
        /// The number of the packet.
        last: u64,
    },
    /// 9: everything before this command was handled.
    QuiescentControl {
        /// The handle of the metadata stream.
        handle: u64,
    },
    /// 10: begins a series of [`DataPending`](Self::DataPending).
    BeginDataPending {
        /// The relay's number of the session.
        session: u64,
    },
    /// 11: ends it; the answer says whether a stream that was not asked for is unfinished.
    EndDataPending {
        /// The relay's number of the session.
        session: u64,
    },
    /// 13
    SendIndex(Index),
    /// 16: viewers may be told of the streams that were added.
    StreamsSent,
    /// 17: all metadata follows once more.
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
    /// [`Malformed`] if the payload is larger, too short for its command, or of a command that this protocol does not have.
    pub fn decode(bytes: &'a [u8], minor: u32, most: u64) -> Result<Decoded<Self>, Malformed> {
        let Some((header, rest)) = bytes.split_first_chunk() else {
            return Ok(Decoded::Needs(ControlHeader::SIZE));
        };
        let header = ControlHeader::decode(header);
        if header.size > most {
            return Err(Malformed::TooMany { what: "bytes of a command", count: header.size, most });
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
    /// [`Malformed`] if the payload is too short for the command, or this protocol does not have the command.
    pub fn from_payload(number: u32, bytes: &'a [u8], minor: u32) -> Result<Self, Malformed> {
        let fields = |size| payload(bytes, size, number);
        Ok(match number {
            1 => Self::AddStream(AddStream::decode(bytes, minor, number)?),
            2 => Self::CreateSession(CreateSession::decode(bytes, minor, number)?),
            3 => Self::StartData,
            5 => Self::Version(Version::decode(fields(Version::SIZE)?)),
            6 => {
                let fields = fields(12)?;
                Self::SendMetadata { handle: fields.u64(0), padding: fields.u32(8), bytes: &bytes[12..] }
            }
            7 => fields(16).map(|fields| Self::CloseStream { handle: fields.u64(0), last: fields.u64(8) })?,
            8 => fields(16).map(|fields| Self::DataPending { handle: fields.u64(0), last: fields.u64(8) })?,
            9 => Self::QuiescentControl { handle: fields(8)?.u64(0) },
            10 => Self::BeginDataPending { session: fields(8)?.u64(0) },
            11 => Self::EndDataPending { session: fields(8)?.u64(0) },
            13 => Self::SendIndex(Index::decode(bytes, minor, number)?),
            16 => Self::StreamsSent,
            17 => fields(16).map(|fields| Self::ResetMetadata { handle: fields.u64(0), version: fields.u64(8) })?,
            18 => Self::RotateStreams(RotateStreams::decode(bytes, number)?),
            19 => Self::CreateChunk(CreateChunk::decode(bytes, number)?),
            20 => Self::CloseChunk(CloseChunk::decode(bytes, number)?),
            21 => Self::ChunkExists { chunk: fields(8)?.u64(0) },
            22 => Self::GetConfiguration { flags: fields(8)?.u64(0) },
            unknown => return Err(Malformed::Command(unknown)),
        })
    }

    /// Appends the header and the payload. Names that do not fit into the fixed fields of a lower `minor` are cut.
    pub fn encode(&self, minor: u32, out: &mut Vec<u8>) {
        let start = out.len();
        out.resize(start + ControlHeader::SIZE, 0);
        let mut numbers = |numbers: &[u64]| {
            for number in numbers {
                out.extend_from_slice(&number.to_be_bytes());
            }
        };
        match self {
            Self::StartData | Self::StreamsSent => {}
            Self::CloseStream { handle, last } | Self::DataPending { handle, last } => numbers(&[*handle, *last]),
            Self::ResetMetadata { handle, version } => numbers(&[*handle, *version]),
            Self::QuiescentControl { handle: number }
            | Self::BeginDataPending { session: number }
            | Self::EndDataPending { session: number }
            | Self::ChunkExists { chunk: number }
            | Self::GetConfiguration { flags: number } => numbers(&[*number]),
            Self::SendMetadata { handle, padding, bytes } => {
                numbers(&[*handle]);
                out.extend_from_slice(&padding.to_be_bytes());
                out.extend_from_slice(bytes);
            }
            Self::AddStream(stream) => stream.encode(minor, out),
            Self::CreateSession(session) => session.encode(minor, out),
            Self::Version(version) => version.encode(out),
            Self::SendIndex(index) => index.encode(minor, out),
            Self::RotateStreams(rotation) => rotation.encode(out),
            Self::CreateChunk(chunk) => chunk.encode(out),
            Self::CloseChunk(chunk) => chunk.encode(out),
        }
        let size = (out.len() - start - ControlHeader::SIZE) as u64;
        let header = ControlHeader { size, command: self.number(), ..ControlHeader::default() };
        out[start..start + ControlHeader::SIZE].copy_from_slice(&header.encode());
    }
}
