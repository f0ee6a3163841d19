//! What a snapshot has.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tracepoint_reader::Recovered;

/// A snapshot that was written: a CTF trace for each process, with its metadata and its account.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SnapshotSummary {
    /// The directory.
    pub path: PathBuf,
    /// The traces in it: the directory itself, or for several processes a directory of each in it.
    pub traces: Vec<PathBuf>,
    /// Events in the traces.
    pub events: u64,
    /// Events that were lost until then, by reason: those of the account, `overwritten` for the older events of flight recorders, and `sink`
    /// for events that went to a sink that keeps no trace.
    pub lost: BTreeMap<String, u64>,
    /// Processes whose rings could not be read, while those of others could: the directory of each, with the reason.
    pub failed: Vec<String>,
    /// What a reader of the traces may want to know, such as packets that could not be read.
    pub notes: Vec<String>,
}

impl SnapshotSummary {
    /// The snapshot that was written to `path`.
    pub fn of(path: &Path, taken: Recovered) -> Self {
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
