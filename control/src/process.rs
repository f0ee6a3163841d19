//! What this process is, and whether another one is there.

use std::ffi::OsString;
use std::os::unix::fs::MetadataExt;
use tracepoint_sinks::ProcessInfo;

/// Looks at the process itself. What cannot be found out is left empty.
pub(crate) fn this_process() -> ProcessInfo {
    let executable = executable().to_string_lossy().into_owned();
    let name = std::fs::read_to_string("/proc/self/comm").map(|name| name.trim_end().to_owned()).unwrap_or_default();
    let hostname = String::from_utf8_lossy(&hostname()).into_owned();
    ProcessInfo { pid: std::process::id(), name, executable, hostname }
}

/// The path of its program; empty if it is not known.
pub(crate) fn executable() -> OsString {
    std::env::current_exe().map(OsString::from).unwrap_or_default()
}

/// The machine's name.
pub(crate) fn hostname() -> Vec<u8> {
    rustix::system::uname().nodename().to_bytes().to_vec()
}

/// When this process started, in clock ticks after boot; 0 if it is not known.
pub(crate) fn started() -> u64 {
    std::fs::read("/proc/self/stat").ok().and_then(|stat| start_time(&stat)).unwrap_or(0)
}

/// Whether the process with this id, and this time of start, exists.
pub(crate) fn exists(pid: u32, started: u64) -> bool {
    std::fs::read(format!("/proc/{pid}/stat")).ok().and_then(|stat| start_time(&stat)) == Some(started)
}

/// The inode of this process's pid namespace, which says where ids mean the same; 0 if it is not known.
pub(crate) fn pid_namespace() -> u64 {
    std::fs::metadata("/proc/self/ns/pid").map_or(0, |namespace| namespace.ino())
}

/// Field 22 of a `stat` file. The second field, a name in parentheses, may hold anything, blanks and parentheses included.
fn start_time(stat: &[u8]) -> Option<u64> {
    let name_end = stat.iter().rposition(|byte| *byte == b')')?;
    let rest = str::from_utf8(&stat[name_end + 1..]).ok()?;
    rest.split_ascii_whitespace().nth(22 - 3)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_do_not_shift_fields() {
        let stat = |name: &str| format!("7 ({name}) S 1 7 7 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 4711 0 0");
        for name in ["cat", "a b", ") R 1 2 (", "", "\u{fc}"] {
            assert_eq!(start_time(stat(name).as_bytes()), Some(4711), "{name}");
        }
        assert_eq!(start_time(b"7 (cat"), None);
        assert_eq!(start_time(b"7 (cat) S 1"), None);
    }

    #[test]
    fn this_process_exists_and_none_that_started_at_another_time() {
        assert!(exists(std::process::id(), started()));
        assert!(!exists(std::process::id(), started() + 1));
    }
}
