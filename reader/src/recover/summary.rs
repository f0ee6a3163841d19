//! The summary of a recovery.

use serde::{Serialize, Serializer};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The result of a recovery.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct RecoverySummary {
    /// Each process whose trace was written.
    pub processes: Vec<RecoveredProcess>,
    /// Each process that could not be recovered, if others could.
    pub failed: Vec<FailedProcess>,
    /// The directory of each process without any event switched on yet, if others could be recovered. Nothing of these is lost.
    #[serde(serialize_with = "all_lossy")]
    pub not_begun: Vec<PathBuf>,
}

impl RecoverySummary {
    /// True if everything could be read.
    pub fn is_complete(&self) -> bool {
        self.failed.is_empty() && self.processes.iter().all(|process| process.complete)
    }

    /// Number of committed events that are in no ring and in no output.
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
    /// The written trace.
    #[serde(serialize_with = "lossy")]
    pub output: PathBuf,
    /// The process.
    pub pid: u32,
    /// The session.
    pub session: String,
    /// True if everything could be read and the process has ended, as in the account.
    pub complete: bool,
    /// True if everything could be read while the process is running, as in the account: the trace balances, and the session continues.
    pub snapshot: bool,
    /// Number of ring files.
    pub rings: u64,
    /// Number of streams in use.
    pub streams: u64,
    /// Number of events in the trace.
    pub records: u64,
    /// Number of packets from the outputs of sinks.
    pub packets_from_outputs: u64,
    /// Number of packets from rings.
    pub packets_from_rings: u64,
    /// Number of packets among these that had not been closed.
    pub mended: u64,
    /// Number of packets from rings without a checksum, because nothing had taken them: damage to them shows only where it
    /// contradicts the format.
    pub unchecked: u64,
    /// Number of sub-buffers of rings without a packet.
    pub unused_places: u64,
    /// Number of sub-buffers of rings that could not be read.
    pub torn_places: u64,
    /// Number of events that were committed but not yet counted.
    pub uncounted: u64,
    /// Number of committed events that are in no ring and in no output, and not at the peer of a stream as far as known; excludes events overwritten
    /// by the policy of a channel.
    pub missing: u64,
    /// Number of events in chunks of an output that newer chunks have replaced: they are neither kept nor missing.
    pub removed: u64,
    /// Number of events that are not in the trace but were acknowledged by the peer of a stream.
    pub acknowledged: u64,
    /// The peers to which the process streamed.
    pub peers: Vec<String>,
    /// Lost events by reason: the reasons in the account, and `overwritten` and `sink`.
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
    /// Number of bytes of the process's rings and outputs read so far.
    pub done: u64,
    /// The total number of these bytes.
    pub total: u64,
}

fn all_lossy<S: Serializer>(paths: &[PathBuf], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(paths.iter().map(|path| path.to_string_lossy()))
}

/// A path as text; bytes that are not UTF-8 are replaced.
fn lossy<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&path.to_string_lossy())
}
