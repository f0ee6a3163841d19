//! The running processes and sessions, for read-only use, such as shell completion: nothing is created, removed or woken.

use super::{Application, read_spec};
use std::sync::Arc;
use tracepoint_run_dir::app::ApplicationInfo;
use tracepoint_run_dir::layout::{APPS, SESSIONS};
use tracepoint_run_dir::private_dir::PrivateDir;
use tracepoint_run_dir::rundir::RunDir;
use tracepoint_session_io::owner::is_left_behind;
use tracepoint_session_spec::check_name;

/// The living traced processes and the sessions of this user.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct RunDirListing {
    /// The processes, ordered by process id.
    pub processes: Vec<ApplicationInfo>,
    /// The names of the sessions, sorted.
    pub sessions: Vec<String>,
}

impl RunDirListing {
    /// Reads the run directory of this user; empty if it does not exist or cannot be read.
    pub fn look() -> Self {
        let Ok(run_dir) = RunDir::open(&RunDir::place()) else { return Self::default() };
        let names = |dir: &PrivateDir| dir.names().unwrap_or_default();
        let mut all = Self::default();
        if let Ok(apps) = run_dir.dir().open_subdir(APPS).map(Arc::new) {
            let open = |name: String| Application::open(name.clone(), &apps.open_subdir(&name).ok()?, &apps);
            all.processes = names(&apps).into_iter().filter_map(open).map(|process| process.info().clone()).collect();
            all.processes.sort_by_key(|info| info.pid);
        }
        if let Ok(sessions) = run_dir.dir().open_subdir(SESSIONS) {
            let is_session = |name: &String| {
                let dir = sessions.open_subdir(name).ok().filter(|_| check_name(name).is_ok());
                dir.is_some_and(|dir| read_spec(&dir).is_ok_and(|spec| !is_left_behind(&spec, &dir)))
            };
            all.sessions = names(&sessions).into_iter().filter(is_session).collect();
            all.sessions.sort();
        }
        all
    }
}
