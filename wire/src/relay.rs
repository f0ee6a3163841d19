//! The protocol of `lttng-relayd` 2.13 towards senders: the commands of an LTTng consumer daemon, and the answers of the relay daemon.
//!
//! ```text
//!   sender ── Command ───────────▶ relay     control connection, port 5342: a header of 24 bytes, then the payload
//!   sender ◀─ Reply ─────────────── relay     one for each command except SEND_METADATA, in order, without a header
//!   sender ── DataHeader, packet ─▶ relay     data connection, port 5343: no answers
//! ```
//!
//! All integers are big-endian; metadata and packets are opaque. Layouts depend on the *minor* version of the protocol, which is the lower one of
//! both sides. A payload longer than its structure is accepted and its tail ignored, as in the relay daemon; a shorter one is
//! [`DecodeError`](crate::DecodeError). No announced length makes a decoder allocate more than the bytes received.

mod chunk;
mod command;
mod header;
mod index;
mod reply;
mod session;
mod stream;

pub use chunk::{ChunkEnd, CloseChunk, CreateChunk, RotateStreams};
pub use command::Command;
pub use header::{ControlHeader, DataHeader};
pub use index::{Index, IndexFile};
pub use reply::{DataPending, Reply};
pub use session::{CreateSession, Version};
pub use stream::AddStream;

#[cfg(test)]
mod tests;

/// The default port of control connections.
pub const CONTROL_PORT: u16 = 5342;
/// The default port of data connections.
pub const DATA_PORT: u16 = 5343;
/// The major version of the protocol.
pub const MAJOR: u32 = 2;
/// The minor version of the protocol implemented here and in `lttng-relayd` 2.13.
pub const MINOR: u32 = 13;
/// The first minor version in which an index has 80 bytes in place of 64.
pub const MINOR_WITH_LONG_INDEX: u32 = 8;
/// The first minor version in which names have variable sizes, and streams belong to trace chunks.
pub const MINOR_WITH_CHUNKS: u32 = 11;
/// The lowest minor version in which sessions have a name.
pub const MIN_MINOR: u32 = 4;
/// Maximum size of a command's payload that `lttng-relayd` accepts, in bytes.
pub const LONGEST_PAYLOAD: u64 = 128 << 20;
/// A flag of the answer to `GET_CONFIGURATION`: traces may be cleared.
pub const MAY_CLEAR: u64 = 1;
/// A stream with this channel name is the metadata of its trace.
pub const METADATA_CHANNEL: &str = "metadata";
/// Maximum length of a session name to which a relay daemon can append the time of creation, in bytes.
pub const LONGEST_SESSION_NAME: usize = 239;
/// Maximum length of a host name in replies to viewers, in bytes.
pub const LONGEST_HOST_NAME: usize = 63;

/// The result of a command, as sent by the relay. Success is 10.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ReturnCode {
    /// 10: done.
    Ok,
    /// 11: an error without its own number; also the answer to an unknown command.
    Unknown,
    /// 25: the session cannot be created.
    Fatal,
    /// 26: there is no memory.
    NoMemory,
    /// 97: a field has an invalid value.
    Invalid,
    /// 152: the command is not valid in this state.
    Protocol,
    /// 153: a file cannot be created.
    File,
    /// Another number.
    Other(u32),
}

impl ReturnCode {
    /// The number on the wire.
    pub const fn number(self) -> u32 {
        match self {
            Self::Ok => 10,
            Self::Unknown => 11,
            Self::Fatal => 25,
            Self::NoMemory => 26,
            Self::Invalid => 97,
            Self::Protocol => 152,
            Self::File => 153,
            Self::Other(number) => number,
        }
    }
}

impl From<u32> for ReturnCode {
    fn from(number: u32) -> Self {
        [Self::Ok, Self::Unknown, Self::Fatal, Self::NoMemory, Self::Invalid, Self::Protocol, Self::File]
            .into_iter()
            .find(|code| code.number() == number)
            .unwrap_or(Self::Other(number))
    }
}

impl std::fmt::Display for ReturnCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Ok => write!(f, "success"),
            Self::Unknown => write!(f, "unknown error (11)"),
            Self::Fatal => write!(f, "fatal error (25)"),
            Self::NoMemory => write!(f, "no memory (26)"),
            Self::Invalid => write!(f, "invalid parameter (97)"),
            Self::Protocol => write!(f, "protocol error (152)"),
            Self::File => write!(f, "a file cannot be created (153)"),
            Self::Other(number) => write!(f, "error {number}"),
        }
    }
}
