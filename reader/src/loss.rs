//! Losses counted by the tracer, and damage found by the reader.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;
use thiserror::Error;

use crate::event::Stream;
use crate::metadata::Metadata;

/// Events or packets missing in one stream, between two times.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Loss {
    /// The stream.
    pub stream: Arc<Stream>,
    /// The kind of loss.
    pub kind: LossKind,
    /// The end of the previous packet (the begin of this one, for the first of a stream), in nanoseconds since the epoch.
    pub from_ns: i64,
    /// For packets the begin, for events the end of the packet that shows the loss, in nanoseconds since the epoch.
    pub to_ns: i64,
}

/// The kind of loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LossKind {
    /// Events were discarded. `None` if their number is unknown, because the counter was not zero when the stream began, or has decreased.
    Events(Option<u64>),
    /// Whole packets are missing.
    Packets {
        /// The number of packets, by the gap in their numbers; `None` if packets have no numbers.
        packets: Option<u64>,
        /// The number of events in them, if packets have `events_before`.
        events: Option<u64>,
    },
    /// The number of a packet is not above that of the previous one: packets are repeated or out of order, or the numbering restarted. The number
    /// of missing packets is unknown.
    Renumbered {
        /// The number of the previous packet.
        previous: u64,
        /// The number of this one.
        number: u64,
    },
}

/// A damaged part of a stream that is left out: a packet, or everything after it. Other streams are not affected.
#[derive(Clone, Debug, PartialEq, Eq, Error, Serialize)]
#[error("{}: byte {offset}: {reason}", file.display())]
#[non_exhaustive]
pub struct Damage {
    /// The stream file.
    #[serde(serialize_with = "crate::json::text::path")]
    pub file: PathBuf,
    /// Its byte offset.
    pub offset: u64,
    /// A description of the fault.
    pub reason: String,
}

impl Damage {
    /// Damage at this byte of a file.
    pub fn new(file: impl Into<PathBuf>, offset: u64, reason: impl Into<String>) -> Self {
        Self { file: file.into(), offset, reason: reason.into() }
    }

    /// The damage of metadata read from `file`, if it fails its checksums.
    pub fn of_metadata(file: &Path, metadata: &Metadata) -> Option<Self> {
        let reason = metadata.damage()?;
        let effect = "what it describes, such as names, types and times, may be wrong";
        Some(Self::new(file, 0, format!("the metadata is damaged: {reason}; {effect}")))
    }
}
