//! This process's entry in `apps`.

use super::AgentError;
use super::file_version::{FileVersion, version_of};
use std::io;
use std::path::Path;
use std::time::Duration;
use tracepoint_reader::process::ProcessKey;
use tracepoint_run_dir::app::{self, AppStatus, ApplicationInfo, TracepointInfo};
use tracepoint_run_dir::bell::Bell;
use tracepoint_run_dir::json::{replace_json, replace_json_with_spare};
use tracepoint_run_dir::layout::{APPS, BELL, PROCESS, STATUS, TRACEPOINTS};
use tracepoint_run_dir::lock::{Lock, OwnLock, is_turn_to_clean, lock_own};
use tracepoint_run_dir::private_dir::{DirError, PrivateDir};
use tracepoint_run_dir::rundir::RunDir;
use tracepoint_run_dir::session_dir::TRIES;

/// The entry's directory, locked for as long as the process lives.
#[derive(Debug)]
pub(super) struct Entry {
    apps: PrivateDir,
    name: String,
    dir: PrivateDir,
    /// `None` once the entry was abandoned.
    lock: Option<OwnLock>,
    /// True if the directory exists. Once it is removed, a later agent of this process may create one of the same name.
    exists: bool,
    /// The versions of the published files that other processes only read.
    published: [Option<FileVersion>; 2],
}

impl Entry {
    /// Creates the entry and its bell, and removes the entries of processes that have ended.
    pub(super) fn make(run_dir: &RunDir) -> Result<(Self, Bell), AgentError> {
        let apps = run_dir.dir().subdir(APPS)?;
        let (name, dir, lock) = make_own(&apps)?;
        let count = apps.names().map_or(0, |names| names.len());
        if let (true, Ok(_lock)) = (is_turn_to_clean(count), Lock::take_within(&apps, Duration::ZERO)) {
            // A stale entry that cannot be removed is harmless.
            let _ = app::remove_stale(&apps);
        }
        apps.close();
        let entry = Self { apps, name, dir, lock: Some(lock), exists: true, published: [None; 2] };
        let bell = Bell::make(&entry.dir).map_err(|error| entry.dir.failed("make", BELL, error))?;
        Ok((entry, bell))
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Publishes the process's description and its tracepoints.
    pub(super) fn publish(&mut self, info: &ApplicationInfo, tracepoints: &[TracepointInfo]) -> Result<(), DirError> {
        self.put(TRACEPOINTS, &tracepoints)?;
        self.put(PROCESS, info)?;
        self.published = self.versions();
        Ok(())
    }

    /// Returns whether the last published files still exist unchanged.
    pub(super) fn is_as_published(&self) -> bool {
        self.versions() == self.published
    }

    fn versions(&self) -> [Option<FileVersion>; 2] {
        [PROCESS, TRACEPOINTS].map(|name| version_of(&self.dir, name).ok())
    }

    /// Publishes which events are enabled.
    pub(super) fn publish_status(&self, status: &AppStatus) -> Result<(), DirError> {
        replace_json_with_spare(&self.dir, STATUS, status).map_err(|error| self.dir.failed("write", STATUS, error))
    }

    fn put<T: serde::Serialize>(&self, name: &str, value: &T) -> Result<(), DirError> {
        replace_json(&self.dir, name, value).map_err(|error| self.dir.failed("write", name, error))
    }

    /// Leaves the entry, which this process may not remove, to the next controller.
    pub(super) fn abandon(&mut self) {
        self.lock = None;
    }

    /// Reopens descriptors that the program has closed.
    pub(super) fn reopen(&mut self, bell: &mut Bell) -> io::Result<()> {
        if let Some(lock) = &mut self.lock {
            lock.renew(&self.dir)?;
        }
        if bell.is_open() { Ok(()) } else { bell.renew(&self.dir) }
    }

    /// Removes the entry; further calls do nothing.
    pub(super) fn remove(&mut self) {
        if std::mem::take(&mut self.exists) {
            app::remove(&self.apps, &self.name, &self.dir);
        }
    }
}

impl Drop for Entry {
    /// Also covers an agent that panics, or that never starts its thread.
    fn drop(&mut self) {
        self.remove();
    }
}

/// Creates a directory for this process, and locks it. A directory that the same process left before an `exec` is removed; the directory of
/// another agent in this process is kept, and the new one gets a number.
fn make_own(apps: &PrivateDir) -> Result<(String, PrivateDir, OwnLock), DirError> {
    let first = ProcessKey::of_this_process().to_string();
    let mut name = first.clone();
    let (mut number, mut tries) = (2_u64, 0);
    loop {
        match apps.make_subdir(&name) {
            Err(DirError::Io { source, .. }) if source.kind() == io::ErrorKind::AlreadyExists => {
                let other = apps.open_subdir(&name)?;
                if app::is_held(&other) {
                    name = format!("{first}-{number}");
                    number += 1;
                } else {
                    app::remove(apps, &name, &other);
                }
            }
            // Another process has mistaken it for the directory of a dead process, and removed it.
            Err(error) if error.is_missing() && tries < TRIES => tries += 1,
            Err(error) => return Err(error),
            Ok(dir) => {
                if let Some(lock) = lock_own(apps, &name, &dir).map_err(|error| apps.failed("lock", &name, error))? {
                    return Ok((name, dir, lock));
                }
            }
        }
    }
}
