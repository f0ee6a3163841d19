//! The descriptors of a recorder: how many it may have, and how many stay free for its work.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::fs;

/// How many descriptors stay free at least: for the rings of the process whose turn it is, and for the outputs of all.
const RESERVE: u64 = 64;

fn limit() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// How many files may stay open between two rounds.
pub(super) fn most_open() -> usize {
    usize::try_from(limit() / 4).unwrap_or(usize::MAX)
}

/// Why no further process can be recorded, if this process has too few descriptors left.
pub(super) fn shortage() -> Option<String> {
    let (limit, open) = (limit(), fs::read_dir("/proc/self/fd").ok()?.count() as u64);
    (open + RESERVE.max(limit / 8) > limit).then(|| {
        format!("the recorder may open {limit} files, and has {open} open; raise the limit (`ulimit -n`) or record fewer processes")
    })
}

/// Raises this process's limit to the most that it may have. The limit stays as it is if that fails.
pub(super) fn raise_limit() {
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}
