//! Properties of this process, as far as systems other than Linux tell them.

use std::env;
use std::ffi::OsString;
use tracepoint_sinks::ProcessInfo;

/// Returns the name of a process's trace in a directory with several traces: the program's name and the entry `PID-START`.
pub fn trace_name(program: &str, entry: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.') { c } else { '_' };
    let name: String = program.chars().map(plain).collect();
    format!("{}-{entry}", name.trim_start_matches('.'))
}

/// Describes this process. Its name is that of its executable.
pub fn this_process() -> ProcessInfo {
    let path = env::current_exe().unwrap_or_default();
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let executable = path.to_string_lossy().into_owned();
    let hostname = String::from_utf8_lossy(&hostname()).into_owned();
    ProcessInfo { pid: std::process::id(), name, executable, hostname, ..ProcessInfo::default() }
}

/// Returns the path of its executable; empty if unknown.
pub(crate) fn executable() -> OsString {
    env::current_exe().map(OsString::from).unwrap_or_default()
}

/// The host name of the machine: on Windows that of the environment.
pub fn hostname() -> Vec<u8> {
    #[cfg(unix)]
    {
        rustix::system::uname().nodename().to_bytes().to_vec()
    }
    #[cfg(not(unix))]
    env::var_os("COMPUTERNAME").map(OsString::into_encoded_bytes).unwrap_or_default()
}

/// Returns `None`: the number of threads is unknown here.
pub const fn thread_count() -> Option<usize> {
    None
}

/// Returns nothing: the addresses of the program's code are unknown here.
pub const fn modules() -> Vec<String> {
    Vec::new()
}
