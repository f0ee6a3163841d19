//! The input of a session with a peer, and its results.

use std::io;
use std::time::Instant;

/// Identity of the sender.
#[derive(Clone, Debug)]
pub(super) struct Identity {
    pub(super) uuid: [u8; 16],
    /// The uuid of the clock; zero if the trace does not use this host's clock.
    pub(super) clock: [u8; 16],
    pub(super) pid: u32,
    pub(super) host: String,
    pub(super) session: String,
    pub(super) process: String,
}

/// The reason why a connection ends.
#[derive(Debug)]
pub(super) enum ConnectionError {
    /// Another attempt may succeed.
    Temporary(io::Error),
    /// No attempt will succeed.
    Final(String),
}

impl From<io::Error> for ConnectionError {
    fn from(error: io::Error) -> Self {
        Self::Temporary(error)
    }
}

/// The state of a session after a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NextStep {
    /// Everything is sent, and the peer has it.
    Over,
    /// Continue at this time, or when a socket or the queue is ready.
    At(Option<Instant>),
}
