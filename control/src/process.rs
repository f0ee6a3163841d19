//! What this process is.

use tracepoint_sinks::ProcessInfo;

/// Looks at the process itself. What cannot be found out is left empty.
pub(crate) fn this_process() -> ProcessInfo {
    let executable = std::env::current_exe().map(|path| path.to_string_lossy().into_owned()).unwrap_or_default();
    let name = std::fs::read_to_string("/proc/self/comm").map(|name| name.trim_end().to_owned()).unwrap_or_default();
    let hostname = rustix::system::uname().nodename().to_string_lossy().into_owned();
    ProcessInfo { pid: std::process::id(), name, executable, hostname }
}
