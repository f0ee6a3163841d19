//! What a trace lacks: losses that the tracer counted, and damage that the reader found.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use crate::event::Stream;

/// Events or packets that the tracer could not keep, in one stream, between two times.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Loss {
    /// The stream that lacks them.
    pub stream: Arc<Stream>,
    /// What is lacking.
    pub kind: LossKind,
    /// The end of the packet before (the begin of this one, for a stream's first): nanoseconds since the epoch.
    pub from_ns: i64,
    /// The begin of the packet that tells, for packets; its end, for events: nanoseconds since the epoch.
    pub to_ns: i64,
}

/// What is lacking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossKind {
    /// Events were discarded. `None`: there may be such events, for the counter was not zero when the stream began, or
    /// went back.
    Events(Option<u64>),
    /// Whole packets are missing.
    Packets {
        /// How many, by the gap in their numbers; `None` where packets have no numbers.
        packets: Option<u64>,
        /// How many events were in them, where packets tell how many came before.
        events: Option<u64>,
    },
}

/// A place where a stream could not be read on. Other streams are not concerned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The stream file.
    pub file: PathBuf,
    /// Byte offset in it.
    pub offset: u64,
    /// What is wrong there.
    pub reason: String,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: byte {}: {}", self.file.display(), self.offset, self.reason)
    }
}

impl std::error::Error for Damage {}
