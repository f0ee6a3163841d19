//! A traced process, as seen by a controller.

use crate::described::{description, is_alive, is_alive_in};
use serde::de::DeserializeOwned;
use std::sync::Arc;
use tracepoint_run_dir::app::{self, AppStatus, ApplicationInfo, TracepointInfo};
use tracepoint_run_dir::json::read_json;
use tracepoint_run_dir::layout::{STATUS, TRACEPOINTS};
use tracepoint_run_dir::private_dir::{DirError, PrivateDir};
use tracepoint_session_spec::selection::Candidate;

/// A living traced process.
#[derive(Clone, Debug)]
pub struct Application {
    name: String,
    /// The directory of all entries. The directory of the process is opened only to be read: there may be more processes than files that
    /// this process may open.
    apps: Arc<PrivateDir>,
    info: ApplicationInfo,
    is_damaged: bool,
}

impl Application {
    /// Opens the process of this entry; `None` if it has ended, or has not published its description yet.
    pub(super) fn open(name: String, dir: &PrivateDir, apps: &Arc<PrivateDir>) -> Option<Self> {
        if !is_alive(dir) {
            return None;
        }
        let described = description(dir);
        let is_damaged = described.is_none();
        let info = described.or_else(|| app::key(dir).map(ApplicationInfo::unknown))?;
        Some(Self { name, apps: Arc::clone(apps), info, is_damaged })
    }

    fn read<T: DeserializeOwned>(&self, file: &str) -> Result<T, DirError> {
        let dir = self.apps.open_subdir(&self.name)?;
        read_json(&dir, file).map_err(|error| dir.failed("read", file, error))
    }

    /// Returns whether the process's description was damaged by another program. Only its id is known until its agent writes the
    /// description again, at the next request.
    pub const fn is_damaged(&self) -> bool {
        self.is_damaged
    }

    /// The name of the process's entry: `PID-START`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The process's description.
    pub const fn info(&self) -> &ApplicationInfo {
        &self.info
    }

    /// Returns whether the process is still alive.
    pub fn is_alive(&self) -> bool {
        is_alive_in(&self.apps, &self.name)
    }

    /// The process's tracepoints, sorted by name.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, most likely because the process has ended.
    pub fn tracepoints(&self) -> Result<Vec<TracepointInfo>, DirError> {
        self.read(TRACEPOINTS)
    }

    /// Returns the enabled events of the process, as of its last answer: see [`Controller::refresh`](super::Controller::refresh).
    ///
    /// # Errors
    ///
    /// As [`Application::tracepoints`].
    pub fn status(&self) -> Result<AppStatus, DirError> {
        self.read(STATUS)
    }

    /// The recordable events of the process; none if it has ended.
    pub(super) fn candidates(&self) -> Vec<Candidate> {
        let all = self.tracepoints().unwrap_or_default().into_iter().filter(TracepointInfo::is_event);
        // A level that this version does not know counts as the default one.
        all.map(|event| Candidate { level: event.level.parse().unwrap_or_default(), name: event.name }).collect()
    }
}
