//! The summary of a snapshot.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tracepoint_reader::RecoverySummary;

/// A snapshot that was written: a CTF trace for each process, with its metadata and its account.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SnapshotSummary {
    /// The directory.
    pub path: PathBuf,
    /// The traces in it: the directory itself, or one directory in it for each of several processes.
    pub traces: Vec<PathBuf>,
    /// Events in the traces.
    pub events: u64,
    /// Events lost before the snapshot, by reason: the losses in the account, `overwritten` for the older events of flight recorders, and
    /// `sink` for events that were written to a sink without a trace on disk.
    pub lost: BTreeMap<String, u64>,
    /// Processes whose rings could not be read, while others could be: the directory of each, and the reason.
    pub failed: Vec<String>,
    /// Remarks for readers of the traces, for example about unreadable packets.
    pub notes: Vec<String>,
}

impl SnapshotSummary {
    /// The snapshot that was written to `path`.
    #[doc(hidden)]
    pub fn of(path: &Path, taken: RecoverySummary) -> Self {
        let mut summary = Self { path: path.to_owned(), ..Self::default() };
        for process in taken.processes {
            summary.traces.push(process.output);
            summary.events = summary.events.saturating_add(process.records);
            for (reason, count) in process.lost {
                let sum = summary.lost.entry(reason).or_default();
                *sum = sum.saturating_add(count);
            }
            summary.notes.extend(process.notes);
        }
        let failed = |process: tracepoint_reader::recover::FailedProcess| {
            format!("{}: {}", process.directory.display(), process.reason)
        };
        summary.failed = taken.failed.into_iter().map(failed).collect();
        summary
    }
}
