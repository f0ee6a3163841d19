//! The answers of a relay. Answers have no header: the sender matches them to its commands by order.

use super::ReturnCode;
use super::command::Command;
use super::session::Version;
use crate::fields::{Fields, Reader, Writer};
use crate::{DecodeError, Decoded};

/// Maximum length of a path in an answer, in bytes; a limit of this implementation.
const LONGEST_PATH: u32 = 4096;

/// The answer to `DATA_PENDING` and `END_DATA_PENDING`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataPending {
    /// Everything is stored.
    No,
    /// Something is not stored yet.
    Yes,
    /// The relay cannot say.
    Error,
}

/// An answer of a relay.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reply {
    /// To VERSION: the version of the relay, not the negotiated one.
    Version(Version),
    /// To `CREATE_SESSION`.
    Session {
        /// The relay's number of the session; 0 on failure.
        id: u64,
        /// The result.
        code: ReturnCode,
        /// The directory of the session below the relay's directory. From minor version 11 on.
        path: String,
    },
    /// To `ADD_STREAM`.
    Stream {
        /// The handle of the stream; 2^64 - 1 on failure.
        handle: u64,
        /// The result.
        code: ReturnCode,
    },
    /// To most commands.
    Code(ReturnCode),
    /// To `DATA_PENDING` and `END_DATA_PENDING`.
    Pending(DataPending),
    /// To `CLOSE_TRACE_CHUNK`.
    ChunkClosed {
        /// The result.
        code: ReturnCode,
        /// The directory of the chunk.
        path: String,
    },
    /// To `TRACE_CHUNK_EXISTS`.
    ChunkExists {
        /// The result.
        code: ReturnCode,
        /// True if it exists.
        exists: bool,
    },
    /// To `GET_CONFIGURATION`.
    Configuration {
        /// The result.
        code: ReturnCode,
        /// Bit 0: traces may be cleared. `lttng-relayd` sets no other bit.
        flags: u64,
    },
}

impl Reply {
    /// The answer to `command` at the start of received bytes; `SEND_METADATA` has none.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] if it announces a path that is too long.
    pub fn decode(command: &Command<'_>, bytes: &[u8], minor: u32) -> Result<Decoded<Self>, DecodeError> {
        let code = |fields: &mut Reader<'_>| fields.u32().map(ReturnCode::from);
        Ok(match command {
            Command::SendMetadata { .. } => Decoded::Whole(Self::Code(ReturnCode::Ok), 0),
            Command::Version(_) => {
                Decoded::read(bytes, Version::SIZE, |fields| Version::read(fields).map(Self::Version))
            }
            Command::CreateSession(_) if minor >= super::MINOR_WITH_CHUNKS => {
                let head = Decoded::read(bytes, 16, |fields| Ok((fields.u64()?, code(fields)?, fields.u32()?)));
                return with_path(
                    bytes,
                    head.map(|(id, code, length)| (length, move |path| Self::Session { id, code, path })),
                );
            }
            Command::CreateSession(_) => Decoded::read(bytes, 12, |fields| {
                Ok(Self::Session { id: fields.u64()?, code: code(fields)?, path: String::new() })
            }),
            Command::AddStream(_) => {
                Decoded::read(bytes, 12, |fields| Ok(Self::Stream { handle: fields.u64()?, code: code(fields)? }))
            }
            Command::CloseChunk(_) => {
                let head = Decoded::read(bytes, 8, |fields| Ok((code(fields)?, fields.u32()?)));
                return with_path(
                    bytes,
                    head.map(|(code, length)| (length, move |path| Self::ChunkClosed { code, path })),
                );
            }
            Command::ChunkExists { .. } => Decoded::read(bytes, 5, |fields| {
                Ok(Self::ChunkExists { code: code(fields)?, exists: fields.u8()? != 0 })
            }),
            Command::GetConfiguration { .. } => {
                Decoded::read(bytes, 12, |fields| Ok(Self::Configuration { code: code(fields)?, flags: fields.u64()? }))
            }
            Command::DataPending { .. } | Command::EndDataPending { .. } => Decoded::read(bytes, 4, |fields| {
                Ok(Self::Pending(match fields.u32()? {
                    0 => DataPending::No,
                    1 => DataPending::Yes,
                    _ => DataPending::Error,
                }))
            }),
            _ => Decoded::read(bytes, 4, |fields| code(fields).map(Self::Code)),
        })
    }

    /// Appends the answer.
    pub fn encode(&self, minor: u32, out: &mut Vec<u8>) {
        let to = Writer(out);
        match self {
            Self::Version(version) => drop(version.write(to)),
            Self::Session { id, code, path } => {
                let to = to.u64(*id).u32(code.number());
                if minor >= super::MINOR_WITH_CHUNKS {
                    put_path(path, *code, to);
                }
            }
            Self::Stream { handle, code } => drop(to.u64(*handle).u32(code.number())),
            Self::Code(code) => drop(to.u32(code.number())),
            Self::Pending(pending) => drop(to.u32(match pending {
                DataPending::No => 0,
                DataPending::Yes => 1,
                DataPending::Error => u32::MAX,
            })),
            Self::ChunkClosed { code, path } => put_path(path, *code, to.u32(code.number())),
            Self::ChunkExists { code, exists } => drop(to.u32(code.number()).u8((*exists).into())),
            Self::Configuration { code, flags } => drop(to.u32(code.number()).u64(*flags)),
        }
    }
}

/// A failure has no path, and the length 0.
fn put_path(path: &str, code: ReturnCode, to: Writer<'_>) {
    if code == ReturnCode::Ok {
        to.u32(path.len() as u32 + 1).terminated(path);
    } else {
        to.u32(0);
    }
}

/// An answer whose fixed part ends with the length of a path, which follows.
fn with_path(bytes: &[u8], head: Decoded<(u32, impl FnOnce(String) -> Reply)>) -> Result<Decoded<Reply>, DecodeError> {
    let ((length, reply), size) = match head {
        Decoded::Whole(head, size) => (head, size),
        Decoded::Needs(size) => return Ok(Decoded::Needs(size)),
    };
    if length > LONGEST_PATH {
        return Err(DecodeError::TooMany { what: "bytes of a path", count: length.into(), most: LONGEST_PATH.into() });
    }
    let path = |fields: &mut Reader<'_>| {
        fields.bytes(size)?;
        fields.padded(length as usize)
    };
    Ok(Decoded::read(bytes, size + length as usize, path).map(reply))
}
