//! The descriptors of a recorder: how many it may have, and how many stay free for its work.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::fs;

/// How many descriptors stay free at least, for the work on the process whose turn it is: its rings and outputs, and what is open for a moment.
/// A process with more rings needs more.
const RESERVE: u64 = 24;
/// How many of them are open for a moment.
const MOMENTARY: u64 = 12;

/// How many descriptors of this process are open.
///
/// Counting them costs time for each, so that is done again only after the recorder has opened a sixteenth of what it may open.
#[derive(Debug, Default)]
pub(super) struct OpenFiles {
    /// How many there were, and how many of them were of recorded processes.
    counted: Option<(u64, u64)>,
}

impl OpenFiles {
    /// Why no further process can be recorded, if this process has too few descriptors left. `kept`: the most that recorded processes have;
    /// `largest`: the most that one of them has.
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

/// How many files of the processes may stay open between two rounds.
pub(super) fn most_open() -> usize {
    usize::try_from(limit() / 4).unwrap_or(usize::MAX)
}

/// Raises this process's limit to the most that it may have. The limit stays as it is if that fails.
pub(super) fn raise_limit() {
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}
