//! What `/proc` says of processes.

use crate::time_namespace::{initial_start, is_same_start};
use fileguard::CheckedFd;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Larger than any `stat` file.
const STAT: usize = 1024;

/// Start time of this process, in clock ticks after boot; 0 if unknown.
pub fn started() -> u64 {
    static LAST: CachedNumber = CachedNumber::new();
    LAST.or_last(fileguard::read("/proc/self/stat").ok().and_then(|stat| start_time(&stat)))
}

/// Start time of the process with this pid; `None` if there is none, or if it is a zombie.
pub fn started_at(pid: u32) -> Option<u64> {
    let mut bytes = [0; STAT];
    let stat = read_stat(&format!("/proc/{pid}/stat"), &mut bytes)?;
    if has_ended(stat) { None } else { start_time(stat) }
}

/// Reads a `stat` file with one `read` and no allocation, because recorders do so in each round.
fn read_stat<'a>(path: &str, bytes: &'a mut [u8; STAT]) -> Option<&'a [u8]> {
    let length = File::open(path).and_then(CheckedFd::of).and_then(|file| (&*file).read(bytes)).ok()?;
    Some(&bytes[..length])
}

/// The status of a process that has ended and was not reaped, as returned by `waitpid`, from its `stat` file; `None` if the file is of
/// another process or of a living one, or if this process may not know it.
pub fn exit_status(stat: &[u8], started: u64) -> Option<i32> {
    let is_it = has_ended(stat) && start_time(stat).is_some_and(|found| is_same_start(found, started));
    field(stat, 52).filter(|_| is_it)?.trim_end().parse().ok()
}

/// True if a process with this pid and start time exists.
pub fn exists(pid: u32, started: u64) -> bool {
    started_at(pid).is_some_and(|found| is_same_start(found, started))
}

/// The inode of this process's pid namespace, in which its pid is valid; 0 if unknown. It is known only if `/proc` also shows other processes.
pub fn pid_namespace() -> u64 {
    std::fs::metadata("/proc/self/ns/pid").map_or(0, |namespace| namespace.ino())
}

/// The same for data that this process writes about itself: without `/proc`, the last known value.
pub fn own_pid_namespace() -> u64 {
    static LAST: CachedNumber = CachedNumber::new();
    LAST.or_last(Some(pid_namespace()).filter(|namespace| *namespace != 0))
}

/// A number from `/proc` for this process, remembered because `/proc` may become inaccessible, for example after `chroot`.
struct CachedNumber {
    pid: AtomicU32,
    number: AtomicU64,
}

impl CachedNumber {
    const fn new() -> Self {
        Self { pid: AtomicU32::new(0), number: AtomicU64::new(0) }
    }

    /// The number that was found, or else the last one of this process; 0 if there is none.
    fn or_last(&self, found: Option<u64>) -> u64 {
        if let Some(found) = found {
            self.number.store(found, Ordering::Relaxed);
            // M3: Release pairs with the Acquire below: the number is of that process.
            self.pid.store(std::process::id(), Ordering::Release);
            return found;
        }
        // M3: pairs with the store above.
        if self.pid.load(Ordering::Acquire) == std::process::id() { self.number.load(Ordering::Relaxed) } else { 0 }
    }
}

/// True if field 3 of a `stat` file is a zombie or dead state.
fn has_ended(stat: &[u8]) -> bool {
    let state = stat.iter().rposition(|byte| *byte == b')').and_then(|name_end| stat.get(name_end + 2));
    matches!(state, Some(b'Z' | b'X'))
}

/// Field 22, converted to the initial time namespace.
fn start_time(stat: &[u8]) -> Option<u64> {
    field(stat, 22)?.parse().ok().map(initial_start)
}

/// A field of a `stat` file, from the third on. The second one, a name in parentheses, may contain spaces and parentheses.
fn field(stat: &[u8], number: usize) -> Option<&str> {
    let name_end = stat.iter().rposition(|byte| *byte == b')')?;
    let rest = str::from_utf8(&stat[name_end + 1..]).ok()?;
    rest.split_ascii_whitespace().nth(number - 3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spaces_in_names_do_not_shift_fields() {
        let stat = |name: &str| format!("7 ({name}) S 1 7 7 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 4711 0 0");
        for name in ["cat", "a b", ") R 1 2 (", "", "\u{fc}"] {
            assert_eq!(start_time(stat(name).as_bytes()), Some(4711), "{name}");
        }
        assert_eq!(start_time(b"7 (cat"), None);
        assert_eq!(start_time(b"7 (cat) S 1"), None);
    }

    #[test]
    fn a_process_is_identified_by_id_and_start_time() {
        assert!(exists(std::process::id(), started()));
        assert!(!exists(std::process::id(), started() + 2));
    }
}
