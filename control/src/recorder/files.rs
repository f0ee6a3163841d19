//! The descriptors of a recorder: how many it may have, and how many stay free for its work.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::fs;

/// How many descriptors stay free at least: for the rings of the process whose turn it is, and for the outputs of all.
const RESERVE: u64 = 64;

/// How many descriptors of this process are open.
///
/// Counting them costs time for each, so that is done again only after the recorder has opened a sixteenth of what it may open.
#[derive(Debug, Default)]
pub(super) struct OpenFiles {
    /// How many there were, and how many of them were of recorded processes.
    counted: Option<(u64, u64)>,
}

impl OpenFiles {
    /// Why no further process can be recorded, if this process has too few descriptors left. `kept`: the most that recorded processes have.
    pub(super) fn shortage(&mut self, kept: usize) -> Option<String> {
        let (limit, kept) = (limit(), kept as u64);
        let most = limit.saturating_sub(RESERVE.max(limit / 8));
        let since = |before: u64| kept.saturating_sub(before);
        let is_known = |(open, before)| since(before) <= limit / 16 && open + since(before) <= most;
        if !self.counted.is_some_and(is_known) {
            let open = fs::read_dir("/proc/self/fd").ok()?.count() as u64;
            self.counted = Some((open, kept));
        }
        self.counted.filter(|(open, _)| *open > most).map(|(open, _)| {
            format!("the recorder may open {limit} files, and has {open} open; raise the limit (`ulimit -n`) or record fewer processes")
        })
    }
}

fn limit() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// How many files may stay open between two rounds.
pub(super) fn most_open() -> usize {
    usize::try_from(limit() / 4).unwrap_or(usize::MAX)
}

/// Raises this process's limit to the most that it may have. The limit stays as it is if that fails.
pub(super) fn raise_limit() {
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}
