//! This process's entry in `apps`.

use super::AgentError;
use crate::app::{self, APPS, AppStatus, PROCESS, STATUS, TRACEPOINTS};
use crate::app::{ApplicationInfo, TracepointInfo};
use crate::bell::Bell;
use crate::private_dir::{DirError, PrivateDir};
use crate::process::ProcessKey;
use crate::rundir::RunDir;
use crate::session_dir::lock::Lock;
use rustix::fs::{FlockOperation, flock};
use std::io;
use std::path::Path;

/// The directory, locked for as long as the process lives.
#[derive(Debug)]
pub(super) struct Entry {
    apps: PrivateDir,
    name: String,
    dir: PrivateDir,
    /// Whether it is there: another agent of this process may have one of that name later.
    is_there: bool,
}

impl Entry {
    /// Makes it, with its bell; removes what processes left that are gone.
    pub(super) fn make(run_dir: &RunDir) -> Result<(Self, Bell), AgentError> {
        let apps = run_dir.subdir(APPS)?;
        let lock = Lock::take(&apps).map_err(|error| apps.failed("lock", "", error))?;
        // What cannot be removed is in nobody's way. Hundreds of processes may start at once, each with the lock: no time to ask more.
        let _ = app::remove_stale(&apps, app::is_held);
        let (name, dir) = make_own(&apps)?;
        flock(&dir, FlockOperation::NonBlockingLockExclusive)
            .map_err(|errno| apps.failed("lock", &name, errno.into()))?;
        drop(lock);
        let entry = Self { apps, name, dir, is_there: true };
        let bell = Bell::make(&entry.dir).map_err(|error| entry.dir.failed("make", app::BELL, error))?;
        Ok((entry, bell))
    }

    /// What it is called.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Says who this process is, and what can be recorded in it.
    pub(super) fn publish(&self, info: &ApplicationInfo, tracepoints: &[TracepointInfo]) -> Result<(), DirError> {
        self.put(TRACEPOINTS, &tracepoints)?;
        self.put(PROCESS, info)
    }

    /// Says what can be recorded, again.
    pub(super) fn publish_tracepoints(&self, tracepoints: &[TracepointInfo]) -> Result<(), DirError> {
        self.put(TRACEPOINTS, &tracepoints)
    }

    /// Says what is on.
    pub(super) fn tell(&self, status: &AppStatus) -> Result<(), DirError> {
        self.put(STATUS, status)
    }

    fn put<T: serde::Serialize>(&self, name: &str, value: &T) -> Result<(), DirError> {
        app::replace_json(&self.dir, name, value).map_err(|error| self.dir.failed("write", name, error))
    }

    /// Removes it.
    pub(super) fn remove(&mut self) {
        if std::mem::take(&mut self.is_there) {
            app::remove(&self.apps, &self.name, &self.dir);
        }
    }
}

impl Drop for Entry {
    /// However the agent ends, or if it does not come to begin.
    fn drop(&mut self) {
        self.remove();
    }
}

/// Makes a directory for this process. What a program left that this process was before it became another one is removed; another
/// agent in this very process keeps its own.
fn make_own(apps: &PrivateDir) -> Result<(String, PrivateDir), DirError> {
    let first = ProcessKey::of_this_process().to_string();
    let mut name = first.clone();
    for number in 2_u64.. {
        match apps.make_subdir(&name) {
            Err(DirError::Io { source, .. }) if source.kind() == io::ErrorKind::AlreadyExists => {}
            made => return made.map(|dir| (name, dir)),
        }
        let other = apps.open_subdir(&name)?;
        if app::is_held(&other) {
            name = format!("{first}-{number}");
        } else {
            app::remove(apps, &name, &other);
            return apps.make_subdir(&name).map(|dir| (name, dir));
        }
    }
    unreachable!("no directory has that many entries")
}
