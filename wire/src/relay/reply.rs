//! What a relay answers. Answers have no header: the sender knows them by the order of its commands.

use super::ReturnCode;
use super::command::Command;
use super::fields::terminated;
use super::session::Version;
use crate::bytes::Fields;
use crate::{Decoded, Malformed};

/// The longest path in an answer, in bytes; a limit of this implementation.
const LONGEST_PATH: u32 = 4096;

/// The answer to `DATA_PENDING` and `END_DATA_PENDING`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pending {
    /// Everything is stored.
    No,
    /// Something is not.
    Yes,
    /// The relay cannot say.
    Error,
}

/// An answer of a relay.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reply {
    /// To VERSION: the version of the relay, not the one that both speak.
    Version(Version),
    /// To `CREATE_SESSION`.
    Session {
        /// The relay's number of the session; 0 on failure.
        id: u64,
        /// The result.
        code: ReturnCode,
        /// The directory of the session below that of the relay. From minor 11 on.
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
    Pending(Pending),
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
        /// Whether it exists.
        exists: bool,
    },
    /// To `GET_CONFIGURATION`.
    Configuration {
        /// The result.
        code: ReturnCode,
        /// Bit 0: traces may be cleared. `lttng-relayd` sets no other.
        flags: u64,
    },
}

impl Reply {
    /// The answer to `command` at the start of received bytes; `SEND_METADATA` has none.
    ///
    /// # Errors
    ///
    /// [`Malformed`] if it announces a path that is too long.
    pub fn decode(command: &Command<'_>, bytes: &[u8], minor: u32) -> Result<Decoded<Self>, Malformed> {
        let size = match command {
            Command::SendMetadata { .. } => 0,
            Command::Version(_) => Version::SIZE,
            Command::CreateSession(_) if minor >= super::MINOR_WITH_CHUNKS => 16,
            Command::CreateSession(_) | Command::AddStream(_) | Command::GetConfiguration { .. } => 12,
            Command::CloseChunk(_) => 8,
            Command::ChunkExists { .. } => 5,
            _ => 4,
        };
        let Some(fields) = Fields::of(bytes, size) else { return Ok(Decoded::Needs(size)) };
        let code = |at| ReturnCode::from(fields.u32(at));
        let reply = match command {
            Command::Version(_) => Self::Version(Version::decode(fields)),
            Command::CreateSession(_) if size == 16 => {
                let (id, code) = (fields.u64(0), code(8));
                return path(bytes, size, fields.u32(12)).map(|it| it.map(|path| Self::Session { id, code, path }));
            }
            Command::CreateSession(_) => Self::Session { id: fields.u64(0), code: code(8), path: String::new() },
            Command::AddStream(_) => Self::Stream { handle: fields.u64(0), code: code(8) },
            Command::CloseChunk(_) => {
                let code = code(0);
                return path(bytes, size, fields.u32(4)).map(|it| it.map(|path| Self::ChunkClosed { code, path }));
            }
            Command::ChunkExists { .. } => Self::ChunkExists { code: code(0), exists: bytes[4] != 0 },
            Command::GetConfiguration { .. } => Self::Configuration { code: code(0), flags: fields.u64(4) },
            Command::DataPending { .. } | Command::EndDataPending { .. } => Self::Pending(match fields.u32(0) {
                0 => Pending::No,
                1 => Pending::Yes,
                _ => Pending::Error,
            }),
            Command::SendMetadata { .. } => Self::Code(ReturnCode::Ok),
            _ => Self::Code(code(0)),
        };
        Ok(Decoded::Whole(reply, size))
    }

    /// Appends the answer.
    pub fn encode(&self, minor: u32, out: &mut Vec<u8>) {
        match self {
            Self::Version(version) => version.encode(out),
            Self::Session { id, code, path } => {
                put_u64(*id, out);
                put_u32(code.number(), out);
                if minor >= super::MINOR_WITH_CHUNKS {
                    put_path(path, *code, out);
                }
            }
            Self::Stream { handle, code } => {
                put_u64(*handle, out);
                put_u32(code.number(), out);
            }
            Self::Code(code) => put_u32(code.number(), out),
            Self::Pending(pending) => put_u32(
                match pending {
                    Pending::No => 0,
                    Pending::Yes => 1,
                    Pending::Error => u32::MAX,
                },
                out,
            ),
            Self::ChunkClosed { code, path } => {
                put_u32(code.number(), out);
                put_path(path, *code, out);
            }
            Self::ChunkExists { code, exists } => {
                put_u32(code.number(), out);
                out.push(u8::from(*exists));
            }
            Self::Configuration { code, flags } => {
                put_u32(code.number(), out);
                put_u64(*flags, out);
            }
        }
    }
}

fn put_u32(number: u32, out: &mut Vec<u8>) {
    out.extend_from_slice(&number.to_be_bytes());
}

fn put_u64(number: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(&number.to_be_bytes());
}

/// A failure has no path, and no length of one but 0.
fn put_path(path: &str, code: ReturnCode, out: &mut Vec<u8>) {
    if code == ReturnCode::Ok {
        put_u32(path.len() as u32 + 1, out);
        terminated(path, out);
    } else {
        put_u32(0, out);
    }
}

/// The path of `length` bytes behind a structure of `size` bytes.
fn path(bytes: &[u8], size: usize, length: u32) -> Result<Decoded<String>, Malformed> {
    if length > LONGEST_PATH {
        return Err(Malformed::TooMany { what: "bytes of a path", count: length.into(), most: LONGEST_PATH.into() });
    }
    let end = size + length as usize;
    Ok(bytes.get(size..end).map_or(Decoded::Needs(end), |path| Decoded::Whole(Fields(path).text(0, path.len()), end)))
}
