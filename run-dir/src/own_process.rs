//! Properties of this process: its name, program, host, threads and code.

mod modules;

use std::ffi::OsString;
use std::os::unix::fs::MetadataExt;
use std::sync::RwLock;
use tracepoint_sinks::ProcessInfo;

pub use modules::{MappedCode, modules, modules_of};

/// Returns the name of a process's trace in a directory with several traces: the program's name and the entry `PID-START`.
pub fn trace_name(program: &str, entry: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.') { c } else { '_' };
    let name: String = program.chars().map(plain).collect();
    format!("{}-{entry}", name.trim_start_matches('.'))
}

/// Describes this process. Unknown fields stay empty; without `/proc`, the values of the first call are returned.
pub fn this_process() -> ProcessInfo {
    // Never blocks on the lock: a child that was forked while another thread held it finds it locked for ever.
    static FIRST: RwLock<Option<ProcessInfo>> = RwLock::new(None);
    let Ok(name) = fileguard::read_to_string("/proc/self/comm") else {
        let first = FIRST.try_read().ok().and_then(|first| first.clone());
        let first = first.filter(|first| first.pid == std::process::id());
        return first.unwrap_or_else(|| ProcessInfo { pid: std::process::id(), ..ProcessInfo::default() });
    };
    let executable = executable().to_string_lossy().into_owned();
    let hostname = String::from_utf8_lossy(&hostname()).into_owned();
    let name = name.trim_end().to_owned();
    let info = ProcessInfo { pid: std::process::id(), name, executable, hostname, ..ProcessInfo::default() };
    if let Ok(mut first) = FIRST.try_write() {
        first.get_or_insert_with(|| info.clone());
    }
    info
}

/// Returns the path of its executable; empty if unknown.
pub(crate) fn executable() -> OsString {
    std::env::current_exe().map(OsString::from).unwrap_or_default()
}

/// The host name of the machine.
pub fn hostname() -> Vec<u8> {
    rustix::system::uname().nodename().to_bytes().to_vec()
}

/// Returns the number of threads of this process, by one system call: the directory of its threads has one link for each, and two more.
/// Reading a `stat` file, which the kernel generates for each reader, takes ten times as long, and drains call this in each round.
pub fn thread_count() -> Option<usize> {
    let links = std::fs::metadata("/proc/self/task").ok()?.nlink();
    usize::try_from(links.checked_sub(2)?).ok().filter(|threads| *threads > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Threads of other tests start and end meanwhile.
    #[test]
    fn threads_are_counted() {
        let is_counted = |_| {
            let entries = std::fs::read_dir("/proc/self/task").expect("/proc").count();
            [thread_count(), thread_count()] == [Some(entries); 2]
        };
        assert!((0..1000).any(is_counted), "{:?}", thread_count());
    }
}
