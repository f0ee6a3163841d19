//! Reads the statistics of all processes of a session, including processes that have ended or were killed.

use super::StatisticResult;
use super::index::{Entry, Index, SUFFIX};
use fileguard::CheckedFd;
use serde::Serialize;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::atomic::AtomicU64;
use std::time::{SystemTime, UNIX_EPOCH};
use tracepoint_core::clock;
use tracepoint_probes::Snapshot;
use tracepoint_probes::snapshot::Results;
use tracepoint_reader::process::ProcessKey;
use tracepoint_run_dir::layout::STATISTICS;
use tracepoint_run_dir::private_dir::PrivateDir;

/// Maximum size of a statistic that is read, in bytes.
const MAX_BYTES: u64 = 1 << 30;

/// The statistics of a session in one process.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct ProcessStatistics {
    /// The process.
    pub process: ProcessKey,
    /// Its short name.
    pub name: String,
    /// True if it still counts. Otherwise the process has ended, was killed, or has called `exec`.
    pub is_alive: bool,
    /// Sorted by the texts of rules and events.
    pub statistics: Vec<StatisticResult>,
}

/// The statistics of a session.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct SessionStatistics {
    /// The time of reading, in nanoseconds on the clock of the processes, for
    /// [`Rate::per_second`](tracepoint_probes::snapshot::Rate::per_second).
    pub time: u64,
    /// The same in nanoseconds since the epoch.
    pub time_ns: i64,
    /// The processes, by their ids.
    pub processes: Vec<ProcessStatistics>,
    /// Unreadable files, with the reasons.
    pub unreadable: Vec<String>,
}

impl SessionStatistics {
    /// Reads the files in the directory of a session. `is_alive` returns whether the process with this name in the directory is alive. A
    /// session without statistics has no processes. Concurrent changes may or may not be included.
    #[doc(hidden)]
    pub fn read(session: &PrivateDir, is_alive: impl Fn(&str) -> bool) -> Self {
        let time_ns = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        let time_ns = i64::try_from(time_ns).unwrap_or(i64::MAX);
        let mut all = Self { time: clock::now(), time_ns, ..Self::default() };
        let Ok(dir) = session.open_subdir(STATISTICS) else { return all };
        for file in dir.names().unwrap_or_default() {
            let Some(process) = file.strip_suffix(SUFFIX).filter(|name| !name.starts_with('.')) else { continue };
            match Index::read(&dir, &file) {
                Ok(index) => {
                    let is_alive = is_alive(process);
                    let of_process = all.read_process(&dir, index, is_alive);
                    all.processes.push(of_process);
                }
                // Removed meanwhile.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => all.unreadable.push(format!("{}: {error}", dir.path().join(&file).display())),
            }
        }
        all.processes.sort_by_key(|process| process.process);
        all
    }

    fn read_process(&mut self, dir: &PrivateDir, index: Index, is_alive: bool) -> ProcessStatistics {
        let shift = index.shift_to_here();
        let Index { process, name, statistics, .. } = index;
        let mut results = Vec::new();
        let mut open: Option<(String, CheckedFd<File>)> = None;
        for entry in statistics {
            match read_one(dir, &mut open, &entry) {
                Ok(mut snapshot) => {
                    snapshot.shift(shift);
                    results.push(StatisticResult::new(entry.rule, entry.event, entry.is_duration, snapshot));
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => self.unreadable.push(format!("{}: {error}", dir.path().join(&entry.file).display())),
            }
        }
        ProcessStatistics { process, name, is_alive, statistics: results }
    }

    /// Returns the same statistics with the times of last values and of the seconds of rates converted to times since the epoch.
    #[must_use]
    pub fn since_epoch(mut self) -> Self {
        let offset = i128::from(self.time_ns) - i128::from(self.time);
        let epoch = |time: i128| u64::try_from(time + offset).unwrap_or(0);
        for result in self.processes.iter_mut().flat_map(|process| &mut process.statistics) {
            match &mut result.snapshot.results {
                Results::Last { values } => values.iter_mut().for_each(|value| value.time = epoch(value.time.into())),
                // The second in which it begins.
                Results::Rate(rate) => rate.seconds.iter_mut().for_each(|(second, _)| {
                    *second = epoch(i128::from(*second) * 1_000_000_000) / 1_000_000_000;
                }),
                _ => {}
            }
        }
        self
    }

    /// Returns the combined results of all processes, sorted by the texts of rules and events. Results of different kinds are not combined,
    /// such as histograms of integers in one process and of floating-point numbers in another.
    ///
    /// Costs a copy of all results.
    pub fn merged(&self) -> Vec<StatisticResult> {
        let mut merged: Vec<StatisticResult> = Vec::new();
        for result in self.processes.iter().flat_map(|process| &process.statistics) {
            let is_same = |known: &&mut StatisticResult| known.rule == result.rule && known.event == result.event;
            let added =
                merged.iter_mut().filter(is_same).any(|known| known.snapshot.merge(result.snapshot.clone()).is_ok());
            if !added {
                merged.push(result.clone());
            }
        }
        merged.sort_by(|a, b| (a.rule.to_string(), &a.event).cmp(&(b.rule.to_string(), &b.event)));
        merged
    }
}

fn read_one(dir: &PrivateDir, open: &mut Option<(String, CheckedFd<File>)>, entry: &Entry) -> io::Result<Snapshot> {
    let bad = |text: String| io::Error::new(io::ErrorKind::InvalidData, text);
    // Without the part that is not understood, it would be another rule.
    entry.rule.check_parts().map_err(|error| bad(error.to_string()))?;
    if open.as_ref().is_none_or(|(name, _)| *name != entry.file) {
        if entry.file.contains('/') {
            return Err(bad("it is in another directory".to_owned()));
        }
        *open = Some((entry.file.clone(), dir.open_file(&entry.file)?));
    }
    let Some((_, file)) = open else { return Err(io::ErrorKind::NotFound.into()) };
    let bytes = |words: usize| (words as u64).saturating_mul(8);
    let (start, len) = (bytes(entry.offset), bytes(entry.words));
    if len > MAX_BYTES || start.saturating_add(len) > file.metadata()?.len() {
        return Err(bad(format!("it is too short for the statistic of {}, or that is too large", entry.event)));
    }
    Snapshot::read_shared(|| copy(file, start, entry.words))?.map_err(|error| bad(error.to_string()))
}

fn copy(file: &File, start: u64, words: usize) -> io::Result<Box<[AtomicU64]>> {
    let mut bytes = vec![0; words * 8];
    file.read_exact_at(&mut bytes, start)?;
    let word = |bytes: &[u8]| AtomicU64::new(bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)));
    Ok(bytes.chunks_exact(8).map(word).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracepoint_session_spec::Rule;

    /// A process of a newer version may have a filter that this version does not understand.
    #[test]
    fn a_statistic_of_a_rule_that_is_not_understood_is_left_out() -> Result<(), Box<dyn std::error::Error>> {
        let temp = tempfile::tempdir()?;
        let session = PrivateDir::at(temp.path())?;
        let rule = Rule::new("a:*").filter("n > 1");
        let entry =
            Entry { file: "f".to_owned(), offset: 0, words: 1, event: "a:b".to_owned(), rule, is_duration: false };
        let list = serde_json::to_string(&Index::new(vec![entry]))?.replace("n > 1", "n >");
        session.subdir(STATISTICS)?.replace(&format!("7-1{SUFFIX}"), list.as_bytes())?;
        let read = SessionStatistics::read(&session, |_| false);
        assert!(read.processes[0].statistics.is_empty(), "{read:?}");
        assert!(read.unreadable.len() == 1 && read.unreadable[0].contains("the filter cannot be used"), "{read:?}");
        Ok(())
    }
}
