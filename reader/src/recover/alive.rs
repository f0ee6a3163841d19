//! Whether a process lives still.

use crate::account::uuid_text;
use crate::ring::Identity;
use std::fs;
use std::os::unix::fs::MetadataExt;

/// Whether the process lives, as far as it can be told from here: not for one of another boot or another pid namespace.
pub(super) fn lives(identity: &Identity) -> bool {
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
    use super::running_since;

    #[test]
    fn this_process_runs_since_it_started() {
        let since = running_since(std::process::id());
        assert!(since.is_some_and(|ticks| ticks > 0));
        assert_eq!(since, running_since(std::process::id()));
        assert_eq!(running_since(u32::MAX), None);
    }
}
