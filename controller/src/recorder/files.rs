//! The descriptors of a recorder: their maximum number, and the number that stays free for its work.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::fs;

/// Minimum number of descriptors that stay free for the work on the current process: for its rings and outputs, and for temporary use. A
/// process with more rings needs more.
const RESERVE: u64 = 24;
/// The part of them that is for temporary use.
const MOMENTARY: u64 = 12;

/// Counts the open descriptors of this process.
///
/// Counting takes time for each descriptor, so it is repeated only after the recorder has opened a sixteenth of its maximum.
#[derive(Debug, Default)]
pub(super) struct OpenFiles {
    /// The number of open descriptors at the last count, and how many of them belonged to recorded processes.
    counted: Option<(u64, u64)>,
}

impl OpenFiles {
    /// Returns the reason why no further process can be recorded, if this process has too few descriptors left. `kept`: the maximum number
    /// that recorded processes use; `largest`: the maximum number that one of them uses.
    pub(super) fn shortage(&mut self, kept: usize, largest: usize) -> Option<String> {
        let (limit, kept) = (limit(), kept as u64);
        let reserve = RESERVE.max(largest as u64 + MOMENTARY);
        let most = limit.saturating_sub(reserve.max(limit / 8));
        let since = |before: u64| kept.saturating_sub(before);
        let is_known = |(open, before)| since(before) <= limit / 16 && open + since(before) <= most;
        if !self.counted.is_some_and(is_known) {
            let open = fs::read_dir("/proc/self/fd").ok()?.count() as u64;
            self.counted = Some((open, kept));
        }
        self.counted.filter(|(open, _)| *open > most).map(|(open, _)| {
            format!(
                "the recorder may open {limit} files, has {open} open, and needs {reserve} more for its work; raise the hard limit to more \
                 than {} (`ulimit -n`, `LimitNOFILE=` of a systemd unit), or record fewer processes",
                open + reserve
            )
        })
    }
}

fn limit() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// Returns the maximum number of files of the processes that may stay open between two rounds.
pub(super) fn most_open() -> usize {
    usize::try_from(limit() / 4).unwrap_or(usize::MAX)
}

/// Returns how many files may be opened for anything else than the rings and outputs of processes, for which a quarter of the limit stays free.
pub(crate) fn room() -> usize {
    let open = fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
    usize::try_from(limit() / 4 * 3).unwrap_or(usize::MAX).saturating_sub(open)
}

/// Raises this process's limit to its maximum. The limit does not change if that fails.
pub(super) fn raise_limit() {
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}
