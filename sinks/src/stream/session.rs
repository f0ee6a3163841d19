//! What a session with a peer is given, and how it tells what it needs.

use std::io;
use std::time::Instant;

/// Who streams.
#[derive(Clone, Debug)]
pub(super) struct Identity {
    pub(super) uuid: [u8; 16],
    /// The uuid of the clock; zero if times of the trace cannot be compared with those of this process.
    pub(super) clock: [u8; 16],
    pub(super) pid: u32,
    pub(super) host: String,
    pub(super) session: String,
    pub(super) process: String,
}

/// What ends a connection.
#[derive(Debug)]
pub(super) enum Trouble {
    /// Another attempt may succeed.
    Temporary(io::Error),
    /// None will.
    Final(String),
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        Self::Temporary(error)
    }
}

/// What a session needs next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Everything was sent, and the peer has it.
    Over,
    /// To go on at this time, or when a socket or the queue has something.
    At(Option<Instant>),
}
