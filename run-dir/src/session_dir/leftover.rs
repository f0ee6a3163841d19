//! The files left in the directory of an ended session by processes that died, or whose recorder died.

use super::lease::has_consumer;
use super::{METADATA, RINGS, dead};
use crate::private_dir::PrivateDir;
use std::time::{SystemTime, UNIX_EPOCH};

/// Rings without a user.
#[derive(Debug)]
pub struct UnusedRings {
    /// The number of processes that they belong to.
    pub processes: usize,
    /// Their size in the file system, in bytes.
    pub bytes: u64,
    /// The last time that one of the processes recorded: a drain touches its directory while it runs.
    pub changed: SystemTime,
    /// True if the removal of some of them was interrupted. Those cannot be recovered.
    pub partly_removed: bool,
}

/// Returns the rings in a session's directory that no process records into and no recorder drains; `None` if there are none.
pub fn unused(session: &PrivateDir) -> Option<UnusedRings> {
    let rings = session.open_subdir(RINGS).ok()?;
    let mut sum = UnusedRings { processes: 0, bytes: 0, changed: UNIX_EPOCH, partly_removed: false };
    for (_, dir) in dead::process_dirs(&rings).ok()? {
        if dead::is_alive(&dir) || has_consumer(&rings, &dir) {
            continue;
        }
        sum.processes += 1;
        sum.bytes += dir.allocated();
        sum.changed = sum.changed.max(dir.changed());
        sum.partly_removed |= dir.file_len(METADATA).is_err();
    }
    (sum.processes > 0).then_some(sum)
}
