//! Which entries in `apps` are of processes that live.

use super::{ApplicationInfo, PROCESS, read_json};
use crate::private_dir::PrivateDir;
use crate::process;
use crate::session_dir::lock::is_locked;
use std::io;

/// Whether somebody has this entry locked. That the process lives is not told: children inherit the lock. Costs next to nothing.
pub(crate) fn is_held(entry: &PrivateDir) -> bool {
    is_locked(entry).unwrap_or(true)
}

/// Whether the process of this entry lives, as far as can be told; in doubt it does.
pub(crate) fn is_alive(entry: &PrivateDir) -> bool {
    if !is_held(entry) {
        return false;
    }
    match read_json::<ApplicationInfo>(entry, PROCESS) {
        Ok(info) => info.pid_namespace == 0 || info.pid_namespace != process::pid_namespace() || info.key().exists(),
        // Not written yet.
        Err(_) => true,
    }
}

/// Removes the entries of processes that are gone, as `is_alive` has it. The caller has `apps` locked, so that nobody is just making one.
pub(crate) fn remove_stale(apps: &PrivateDir, is_alive: fn(&PrivateDir) -> bool) -> io::Result<()> {
    for name in apps.names()? {
        if let Some(entry) = apps.open_subdir(&name).ok().filter(|entry| !is_alive(entry)) {
            apps.remove_with_files(&name, &entry);
        }
    }
    Ok(())
}
