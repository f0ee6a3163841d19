//! A traced process, from outside.

use crate::app::{self, AppStatus, ApplicationInfo, PROCESS, STATUS, TRACEPOINTS, TracepointInfo};
use crate::private_dir::{DirError, PrivateDir};
use crate::rule_match::Candidate;

/// A traced process that lives.
#[derive(Debug)]
pub struct Application {
    name: String,
    dir: PrivateDir,
    info: ApplicationInfo,
}

impl Application {
    /// The one with this entry; `None` if it is gone, or has not said yet who it is.
    pub(super) fn open(name: String, dir: PrivateDir) -> Option<Self> {
        let info = app::read_json(&dir, PROCESS).ok()?;
        app::is_alive(&dir).then_some(Self { name, dir, info })
    }

    /// The name of its entry: `PID-START`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Who it is.
    pub const fn info(&self) -> &ApplicationInfo {
        &self.info
    }

    /// Whether it lives still.
    pub fn is_alive(&self) -> bool {
        app::is_alive(&self.dir)
    }

    /// What can be traced in it, by name.
    ///
    /// # Errors
    ///
    /// If it cannot be read, most likely because the process has ended meanwhile.
    pub fn tracepoints(&self) -> Result<Vec<TracepointInfo>, DirError> {
        app::read_json(&self.dir, TRACEPOINTS).map_err(|error| self.dir.failed("read", TRACEPOINTS, error))
    }

    /// What is on in it, as of the last time that it was asked: see [`Controller::refresh`](super::Controller::refresh).
    ///
    /// # Errors
    ///
    /// As [`Application::tracepoints`].
    pub fn status(&self) -> Result<AppStatus, DirError> {
        app::read_json(&self.dir, STATUS).map_err(|error| self.dir.failed("read", STATUS, error))
    }

    /// The events that can be recorded in it; none if it has ended meanwhile.
    pub(super) fn candidates(&self) -> Vec<Candidate> {
        let all = self.tracepoints().unwrap_or_default().into_iter().filter(TracepointInfo::is_event);
        all.map(|event| Candidate { level: event.parsed_level(), name: event.name }).collect()
    }
}
