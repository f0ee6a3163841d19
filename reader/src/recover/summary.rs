//! What a recovery tells of itself.

use serde::{Serialize, Serializer};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// What was recovered.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct Recovered {
    /// Each process whose trace was written.
    pub processes: Vec<RecoveredProcess>,
    /// Each process of which nothing could be recovered, where there are others.
    pub failed: Vec<FailedProcess>,
}

impl Recovered {
    /// Whether everything that was there could be read.
    pub fn is_complete(&self) -> bool {
        self.failed.is_empty() && self.processes.iter().all(|process| process.complete)
    }
}

/// A process of which nothing could be recovered.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct FailedProcess {
    /// Its directory.
    #[serde(serialize_with = "lossy")]
    pub directory: PathBuf,
    /// Why.
    pub reason: String,
}

/// What was recovered of one process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RecoveredProcess {
    /// Its directory.
    #[serde(serialize_with = "lossy")]
    pub directory: PathBuf,
    /// The trace that was made of it.
    #[serde(serialize_with = "lossy")]
    pub output: PathBuf,
    /// The process.
    pub pid: u32,
    /// The session.
    pub session: String,
    /// Whether everything could be read and the process has ended: what the account says too.
    pub complete: bool,
    /// Ring files.
    pub rings: u64,
    /// Streams with anything in them.
    pub streams: u64,
    /// Events that are in the trace.
    pub records: u64,
    /// Packets that a sink had kept.
    pub packets_from_outputs: u64,
    /// Packets that were in a ring still.
    pub packets_from_rings: u64,
    /// Packets among them that had not been closed.
    pub mended: u64,
    /// Places in rings without a packet.
    pub unused_places: u64,
    /// Places in rings with something that could not be read.
    pub torn_places: u64,
    /// Events that were committed and not yet counted.
    pub uncounted: u64,
    /// Events that were lost, by reason: those of the account, and `overwritten` and `sink`.
    pub lost: BTreeMap<String, u64>,
    /// What else there is to say.
    pub notes: Vec<String>,
}

/// How far a recovery is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// Which process, counted from 0.
    pub process: usize,
    /// How many there are.
    pub processes: usize,
    /// Bytes of this process's rings and outputs that were looked at.
    pub done: u64,
    /// How many there are.
    pub total: u64,
}

/// Paths need not be text.
fn lossy<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&path.to_string_lossy())
}
