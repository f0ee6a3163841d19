//! Which entries in `apps` are of processes that live.

use super::{ApplicationInfo, PROCESS, read_json};
use crate::private_dir::PrivateDir;
use crate::process;
use crate::session_dir::lock::is_locked;
use std::io;

/// Whether the process of this entry lives, as far as can be told; in doubt it does. The lock alone does not tell: children inherit it.
pub(crate) fn is_alive(entry: &PrivateDir) -> bool {
    if !is_locked(entry).unwrap_or(true) {
        return false;
    }
    match read_json::<ApplicationInfo>(entry, PROCESS) {
        Ok(info) => info.pid_namespace == 0 || info.pid_namespace != process::pid_namespace() || info.key().exists(),
        // Not written yet.
        Err(_) => true,
    }
}

/// Removes the entries of processes that are gone. The caller has `apps` locked, so that nobody is just making one.
pub(crate) fn remove_stale(apps: &PrivateDir) -> io::Result<()> {
    for name in apps.names()? {
        if let Some(entry) = apps.open_subdir(&name).ok().filter(|entry| !is_alive(entry)) {
            apps.remove_with_files(&name, &entry);
        }
    }
    Ok(())
}
