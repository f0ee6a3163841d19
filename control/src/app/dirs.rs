//! Tells which entries in `apps` belong to living processes.

use super::{ApplicationInfo, BELL, PROCESS, STATUS, TRACEPOINTS, read_json};
use crate::private_dir::PrivateDir;
use crate::process::{self, ProcessKey};
use crate::session_dir::lock::is_locked;
use std::io;

/// Whether a process holds the lock on this entry; it may be a child that inherited it. Cheap.
pub(crate) fn is_held(entry: &PrivateDir) -> bool {
    is_locked(entry).unwrap_or(true)
}

/// Whether the process of this entry is alive, as far as is known; assumes so in doubt.
pub(crate) fn is_alive(entry: &PrivateDir) -> bool {
    if !is_held(entry) {
        return false;
    }
    match read_json::<ApplicationInfo>(entry, PROCESS) {
        Ok(info) => info.pid_namespace == 0 || info.pid_namespace != process::pid_namespace() || info.key().exists(),
        // The agent has not written it yet.
        Err(_) => true,
    }
}

/// Removes the entries of processes that are not alive according to `is_alive`. The caller holds the lock on `apps`, so no process is
/// just making an entry. Other files stay: a service may keep its own files in the run directory.
pub(crate) fn remove_stale(apps: &PrivateDir, is_alive: fn(&PrivateDir) -> bool) -> io::Result<()> {
    for name in apps.names()?.into_iter().filter(|name| ProcessKey::of_directory(name).is_some()) {
        if let Some(entry) = apps.open_subdir(&name).ok().filter(|entry| !is_alive(entry)) {
            remove(apps, &name, &entry);
        }
    }
    Ok(())
}

/// Removes an entry: the files that agents make, and the directory if it is then empty.
pub(crate) fn remove(apps: &PrivateDir, name: &str, entry: &PrivateDir) {
    for file in [BELL, PROCESS, TRACEPOINTS, STATUS] {
        entry.remove_file(file);
        entry.remove_file(&PrivateDir::temporary(file));
        entry.remove_file(&PrivateDir::spare(file));
    }
    apps.remove_empty(name);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// A service may have its own directories under `apps`; they stay.
    #[test]
    fn files_that_are_not_entries_are_not_removed() -> Result<(), Box<dyn std::error::Error>> {
        let temp = tempfile::tempdir()?;
        let apps = PrivateDir::at(temp.path())?;
        for (name, file) in [("web", STATUS), ("12-34", "notes"), ("12-35", STATUS), ("12-36-2", BELL)] {
            apps.make_subdir(name)?;
            fs::write(temp.path().join(name).join(file), "x")?;
        }
        remove_stale(&apps, is_alive)?;
        let mut left = apps.names()?;
        left.sort();
        assert_eq!(left, ["12-34", "web"]);
        assert!(temp.path().join("12-34/notes").exists() && temp.path().join("web").join(STATUS).exists());
        Ok(())
    }
}
