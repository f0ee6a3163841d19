//! The summary of a recovery.

use serde::{Serialize, Serializer};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// What was recovered.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct Recovered {
    /// Each process whose trace was written.
    pub processes: Vec<RecoveredProcess>,
    /// Each process that could not be recovered, if others could.
    pub failed: Vec<FailedProcess>,
    /// The directory of each process of which no event was switched on yet, if others could be recovered. Nothing of it is lost.
    #[serde(serialize_with = "all_lossy")]
    pub not_begun: Vec<PathBuf>,
}

impl Recovered {
    /// Whether everything could be read.
    pub fn is_complete(&self) -> bool {
        self.failed.is_empty() && self.processes.iter().all(|process| process.complete)
    }

    /// Events that were committed, and that neither a ring nor an output has.
    pub fn missing(&self) -> u64 {
        self.processes.iter().fold(0, |sum, process| sum.saturating_add(process.missing))
    }
}

/// A process that could not be recovered.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct FailedProcess {
    /// Its directory.
    #[serde(serialize_with = "lossy")]
    pub directory: PathBuf,
    /// The reason.
    pub reason: String,
}

/// A recovered process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RecoveredProcess {
    /// Its directory.
    #[serde(serialize_with = "lossy")]
    pub directory: PathBuf,
    /// The trace that was written.
    #[serde(serialize_with = "lossy")]
    pub output: PathBuf,
    /// The process.
    pub pid: u32,
    /// The session.
    pub session: String,
    /// Whether everything could be read and the process has ended, as in the account.
    pub complete: bool,
    /// Whether everything could be read while the process runs, as in the account: what is there balances, and the session goes on.
    pub snapshot: bool,
    /// Ring files.
    pub rings: u64,
    /// Streams that were used.
    pub streams: u64,
    /// Events that are in the trace.
    pub records: u64,
    /// Packets from the outputs of sinks.
    pub packets_from_outputs: u64,
    /// Packets from rings.
    pub packets_from_rings: u64,
    /// Packets among them that had not been closed.
    pub mended: u64,
    /// Packets among those from rings that had no checksum, because nothing had taken them: damage to them shows only where it
    /// contradicts the format.
    pub unchecked: u64,
    /// Sub-buffers of rings without a packet.
    pub unused_places: u64,
    /// Sub-buffers of rings that could not be read.
    pub torn_places: u64,
    /// Events that were committed and not yet counted.
    pub uncounted: u64,
    /// Events that were committed, and that neither a ring nor an output has, nor the peer of a stream as far as is known; without those that
    /// the policy of a channel overwrites.
    pub missing: u64,
    /// Events that were in chunks of an output that newer chunks have replaced: they are neither kept nor missing.
    pub removed: u64,
    /// Events that are not in the trace, and that the peer of a stream has acknowledged.
    pub acknowledged: u64,
    /// The peers to which the process was streamed.
    pub peers: Vec<String>,
    /// Events that were lost, by reason: those of the account, and `overwritten` and `sink`.
    pub lost: BTreeMap<String, u64>,
    /// Notes on damage and contradictions.
    pub notes: Vec<String>,
}

/// The progress of a recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// The index of the process, from 0.
    pub process: usize,
    /// The number of processes.
    pub processes: usize,
    /// Bytes of the process's rings and outputs that were read.
    pub done: u64,
    /// The number of these bytes.
    pub total: u64,
}

fn all_lossy<S: Serializer>(paths: &[PathBuf], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(paths.iter().map(|path| path.to_string_lossy()))
}

/// A path as text; other bytes are replaced.
fn lossy<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&path.to_string_lossy())
}
