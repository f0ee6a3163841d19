//! Detects if a process is still running and recording.

use crate::boot_id::boot_id;
use crate::ring::Identity;
use crate::time_namespace::{initial_start, is_same_start};
use rustix::fs::{FlockOperation, flock};
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The file in a process's directory that a remote consumer locks.
const CONSUMER: &str = "consumer";

/// True if the process may still record into `directory`. A process with a remote consumer unlocks the directory and leaves it behind
/// when the recording ends, and may continue to run.
pub(crate) fn is_recording(identity: &Identity, directory: &Path) -> bool {
    is_running(identity) && !(directory.join(CONSUMER).exists() && is_unlocked(directory))
}

/// True if no process has the directory locked. It has metadata, so its process must have locked it earlier.
fn is_unlocked(directory: &Path) -> bool {
    let Ok(directory) = File::open(directory) else { return false };
    let is_free = flock(&directory, FlockOperation::NonBlockingLockShared).is_ok();
    is_free && flock(&directory, FlockOperation::Unlock).is_ok()
}

/// True if the process is running. This cannot be determined for a process of another boot or PID namespace.
fn is_running(identity: &Identity) -> bool {
    let namespace = fs::metadata("/proc/self/ns/pid").map(|link| link.ino()).ok();
    boot_id() == Some(identity.boot)
        && namespace == Some(identity.pid_namespace)
        && running_since(identity.pid).is_some_and(|start| is_same_start(start, identity.start))
}

/// The start time of a process in clock ticks after boot, in the initial time namespace; `None` if it does not exist, or is a zombie.
fn running_since(pid: u32) -> Option<u64> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let stat = String::from_utf8_lossy(&stat);
    // The name of the program is in parentheses, and may itself contain parentheses.
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace();
    let state = fields.next()?;
    if matches!(state, "Z" | "X") { None } else { fields.nth(18)?.parse().ok().map(initial_start) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_runs_since_it_started() {
        let since = running_since(std::process::id());
        assert!(since.is_some_and(|ticks| ticks > 0));
        assert_eq!(since, running_since(std::process::id()));
        assert_eq!(running_since(u32::MAX), None);
    }

    #[test]
    fn a_directory_is_unlocked_unless_a_process_locks_it() -> std::io::Result<()> {
        let dir = tempfile::tempdir()?;
        assert!(is_unlocked(dir.path()) && is_unlocked(dir.path()));
        let owner = File::open(dir.path())?;
        flock(&owner, FlockOperation::NonBlockingLockExclusive)?;
        assert!(!is_unlocked(dir.path()) && !is_unlocked(&dir.path().join("gone")));
        Ok(())
    }
}
