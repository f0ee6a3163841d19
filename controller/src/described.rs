//! Decides which entries in `apps` belong to living processes, and reads their descriptions.

use tracepoint_reader::process;
use tracepoint_run_dir::app::{self, ApplicationInfo};
use tracepoint_run_dir::json::read_json;
use tracepoint_run_dir::layout::PROCESS;
use tracepoint_run_dir::private_dir::PrivateDir;

/// Returns whether the process of this entry is alive. Returns true in doubt, for example if the file is damaged.
pub(crate) fn is_alive(entry: &PrivateDir) -> bool {
    if !app::is_held(entry) {
        return false;
    }
    match description(entry) {
        Some(info) => info.pid_namespace == 0 || info.pid_namespace != process::pid_namespace() || info.key().exists(),
        // The agent has not written it yet, or it was damaged.
        None => true,
    }
}

/// Returns whether the process called `name` in `apps`, the directory of the entries, is alive.
pub(crate) fn is_alive_in(apps: &PrivateDir, name: &str) -> bool {
    apps.open_subdir(name).is_ok_and(|entry| is_alive(&entry))
}

/// Returns the description that the process of this entry wrote; `None` if it cannot be read, or describes another process.
pub(crate) fn description(entry: &PrivateDir) -> Option<ApplicationInfo> {
    read_json::<ApplicationInfo>(entry, PROCESS).ok().filter(|info| Some(info.key()) == app::key(entry))
}
