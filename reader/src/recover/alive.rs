//! Whether a process lives still.

use crate::account::uuid_text;
use crate::ring::Identity;
use rustix::fs::{FlockOperation, flock};
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The file in a process's directory that is locked by whoever takes its packets from outside.
const CONSUMER: &str = "consumer";

/// Whether the process may record into `directory` still. One whose packets are taken from outside leaves it as it is when the recording
/// ends, unlocked, and may live on.
pub(super) fn records(identity: &Identity, directory: &Path) -> bool {
    lives(identity) && !(directory.join(CONSUMER).exists() && is_unlocked(directory))
}

/// Whether nobody has the directory locked. It has its metadata, so that its process has locked it before.
fn is_unlocked(directory: &Path) -> bool {
    let Ok(directory) = File::open(directory) else { return false };
    let is_free = flock(&directory, FlockOperation::NonBlockingLockShared).is_ok();
    is_free && flock(&directory, FlockOperation::Unlock).is_ok()
}

/// Whether the process lives, as far as it can be told from here: not for one of another boot or another pid namespace.
fn lives(identity: &Identity) -> bool {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let namespace = fs::metadata("/proc/self/ns/pid").map(|link| link.ino()).ok();
    boot.trim() == uuid_text(identity.boot)
        && namespace == Some(identity.pid_namespace)
        && running_since(identity.pid) == Some(identity.start)
}

/// When a process started, in clock ticks after boot; `None` if there is none, or one that has ended and is not yet reaped.
fn running_since(pid: u32) -> Option<u64> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let stat = String::from_utf8_lossy(&stat);
    // The name of the program stands in parentheses, and may hold any.
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace();
    let state = fields.next()?;
    if matches!(state, "Z" | "X") { None } else { fields.nth(18)?.parse().ok() }
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
    fn a_directory_is_unlocked_if_nobody_has_it_locked() -> std::io::Result<()> {
        let dir = tempfile::tempdir()?;
        assert!(is_unlocked(dir.path()) && is_unlocked(dir.path()));
        let owner = File::open(dir.path())?;
        flock(&owner, FlockOperation::NonBlockingLockExclusive)?;
        assert!(!is_unlocked(dir.path()) && !is_unlocked(&dir.path().join("gone")));
        Ok(())
    }
}
