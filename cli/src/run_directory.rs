//! The run directory of this host, as far as the verbs that read traces use it.

use std::path::PathBuf;
use tracepoint_controller::Controller;
pub(crate) use tracepoint_controller::rings_behind;
use tracepoint_run_dir::RunDir;

/// Returns its path, if there is one.
pub(crate) fn path() -> Option<PathBuf> {
    RunDir::find().ok().map(|directory| directory.path().to_owned())
}

/// Returns the directory of a session.
pub(crate) fn of_session(name: &str) -> Option<PathBuf> {
    Controller::find().ok()?.session_directory(name)
}
