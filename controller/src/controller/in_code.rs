//! Sessions that programs have started in code. They can be listed and snapshots can be taken; only their program changes them.

use super::{ControlError, Controller};
use std::fs;
use std::path::PathBuf;
use tracepoint_reader::process::ProcessKey;
use tracepoint_run_dir::layout::SESSION;
use tracepoint_run_dir::session_dir;
use tracepoint_session_io::statistics::SessionStatistics;
use tracepoint_session_spec::{SessionSpec, check_name};

/// A running session that a program has started in code, with its rings in the run directory.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SessionInCode {
    /// The session's name. Several processes may have sessions of the same name, such as instances of one program.
    pub name: String,
    /// The process, in its own pid namespace.
    pub process: ProcessKey,
    /// The name of its main thread; empty if it is in another pid namespace.
    pub program: String,
    /// The directory of the sessions of this name, which `tracectl snapshot` reads.
    pub path: PathBuf,
    /// Its description; `None` if it cannot be read.
    pub spec: Option<SessionSpec>,
    /// The size of its rings in the file system, in bytes.
    pub bytes: u64,
}

impl Controller {
    /// The running sessions that programs have started in code, by name and process.
    ///
    /// Costs a few system calls for each process that records. Unreadable directories are left out.
    pub fn sessions_in_code(&self) -> Vec<SessionInCode> {
        let names = self.store.sessions().names().unwrap_or_default();
        let mut found: Vec<_> = names.iter().flat_map(|name| self.in_code(name)).collect();
        found.sort_by(|a, b| (&a.name, a.process).cmp(&(&b.name, b.process)));
        found
    }

    /// Returns the directory of the session called `name`, remotely controlled or in code, running or over. `None` if there is none.
    pub fn session_directory(&self, name: &str) -> Option<PathBuf> {
        check_name(name).ok()?;
        Some(self.store.sessions().open_subdir(name).ok()?.path().to_owned())
    }

    /// Returns the statistics of the session called `name`, remotely controlled or in code, like
    /// [`NamedSession::statistics`](super::NamedSession::statistics).
    ///
    /// # Errors
    ///
    /// [`ControlError::NoSession`] if there is none.
    pub fn statistics(&self, name: &str) -> Result<SessionStatistics, ControlError> {
        match self.session(name) {
            Ok(session) => session.statistics(),
            Err(ControlError::SessionInCode { .. }) => {
                let dir = self.store.sessions().open_subdir(name)?;
                Ok(SessionStatistics::read(&dir, |process| session_dir::is_recording(&dir, process)))
            }
            Err(error) => Err(error),
        }
    }

    /// Returns the error of a command for remotely controlled sessions, if a program has started `name` in code.
    pub(super) fn is_in_code(&self, name: &str) -> Option<ControlError> {
        let found = self.in_code(name);
        let pid = found.first()?.process.pid;
        Some(ControlError::SessionInCode { name: name.to_owned(), pid })
    }

    pub(super) fn in_code(&self, name: &str) -> Vec<SessionInCode> {
        let Ok(dir) =
            check_name(name).map_err(drop).and_then(|()| self.store.sessions().open_subdir(name).map_err(drop))
        else {
            return Vec::new();
        };
        let path = dir.path().to_owned();
        let sessions = session_dir::living_in_code(&dir).into_iter().map(|(process, rings, is_here)| {
            let text = rings.read_file(SESSION, SessionSpec::MAX_SIZE).unwrap_or_default();
            let comm = || fs::read_to_string(format!("/proc/{}/comm", process.pid)).unwrap_or_default();
            SessionInCode {
                name: name.to_owned(),
                process,
                program: if is_here { comm().trim_end().to_owned() } else { String::new() },
                path: path.clone(),
                spec: SessionSpec::parse_in_code(&text).ok(),
                bytes: rings.allocated(),
            }
        });
        sessions.collect()
    }
}
