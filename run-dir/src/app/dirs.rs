//! The entries in `apps`: who holds them, and their removal.

use crate::layout::{BELL, PROCESS, STATUS, TRACEPOINTS};
use crate::lock::{ALIVE, is_locked, remove_locked};
use crate::private_dir::PrivateDir;
use std::io;
use tracepoint_reader::process::ProcessKey;

/// Returns whether a process holds the lock on this entry. Cheap.
pub fn is_held(entry: &PrivateDir) -> bool {
    is_locked(entry).unwrap_or(true)
}

/// The process of this entry.
pub fn key(entry: &PrivateDir) -> Option<ProcessKey> {
    ProcessKey::of_directory(entry.path().file_name()?.to_str()?)
}

/// Removes the entries on which no process holds the lock. If a child of a dead process holds the lock, the entry stays until the child
/// ends. The caller holds the lock on `apps`, so no process is creating an entry at this moment. Other files stay: a service may keep its
/// own files in the run directory.
pub fn remove_stale(apps: &PrivateDir) -> io::Result<()> {
    for name in apps.names()?.into_iter().filter(|name| ProcessKey::of_directory(name).is_some()) {
        if let Some(entry) = apps.open_subdir(&name).ok().filter(|entry| !is_held(entry)) {
            remove_locked((apps, &name), &entry, || !is_held(&entry), || remove(apps, &name, &entry));
        }
    }
    Ok(())
}

/// Removes an entry: the files that agents create, and the directory if it is then empty.
pub fn remove(apps: &PrivateDir, name: &str, entry: &PrivateDir) {
    for file in [BELL, PROCESS, TRACEPOINTS, STATUS, ALIVE] {
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
        remove_stale(&apps)?;
        let mut left = apps.names()?;
        left.sort();
        assert_eq!(left, ["12-34", "web"]);
        assert!(temp.path().join("12-34/notes").exists() && temp.path().join("web").join(STATUS).exists());
        Ok(())
    }
}
