//! Which processes of a session are alive, what they take, and what is kept of those that died.
//!
//! A process holds the lock on its directory for as long as it records. Forked children inherit it, and may outlive the process:
//! then it is dead all the same if its id says so, where the id means anything to us.

use super::lock::is_locked;
use crate::private_dir::PrivateDir;
use crate::process;
use crate::ring_files::{RING_SUFFIX, pid_namespace_of};
use std::cmp::Reverse;
use std::io;
use std::path::PathBuf;

/// How many bytes the files of the rings of all living processes take.
///
/// Costs a few system calls for each process that is there, and one for each ring.
pub(super) fn memory_of_living(rings: &PrivateDir) -> io::Result<u64> {
    let mut sum = 0;
    for (_, dir) in process_dirs(rings)? {
        if is_alive(&dir) {
            // A file that vanishes meanwhile takes nothing.
            sum += ring_names(&dir).iter().map(|name| dir.file_len(name).unwrap_or(0)).sum::<u64>();
        }
    }
    Ok(sum)
}

/// Removes what dead processes left, but for the newest `keep`: the directories of these. What cannot be removed stays.
pub(super) fn remove_old(rings: &PrivateDir, keep: usize) -> Vec<PathBuf> {
    let mut dead = Vec::new();
    for (name, dir) in process_dirs(rings).unwrap_or_default() {
        if is_alive(&dir) {
            continue;
        }
        // Without metadata nothing had been switched on.
        if dir.file_len(super::METADATA).is_err() {
            rings.remove_with_files(&name, &dir);
        } else {
            let changed = dir.stat().map_or((0, 0), |stat| (stat.st_mtime, stat.st_mtime_nsec));
            dead.push((changed, name, dir));
        }
    }
    dead.sort_by_key(|(changed, ..)| Reverse(*changed));
    for (_, name, dir) in dead.iter().skip(keep) {
        rings.remove_with_files(name, dir);
    }
    dead.iter().take(keep).map(|(.., dir)| dir.path().to_owned()).collect()
}

/// The directories of processes, with their names. What is no directory of ours is left alone.
fn process_dirs(rings: &PrivateDir) -> io::Result<Vec<(String, PrivateDir)>> {
    let open = |name: String| rings.open_subdir(&name).ok().map(|dir| (name, dir));
    Ok(rings.names()?.into_iter().filter(|name| process_of(name).is_some()).filter_map(open).collect())
}

/// The names of the rings in `dir`; none if it vanished meanwhile.
fn ring_names(dir: &PrivateDir) -> Vec<String> {
    dir.names().unwrap_or_default().into_iter().filter(|name| name.ends_with(RING_SUFFIX)).collect()
}

/// Whether the process of this directory records into it still. In doubt it does.
fn is_alive(dir: &PrivateDir) -> bool {
    is_locked(dir).unwrap_or(true) && !is_known_to_be_gone(dir).unwrap_or(false)
}

/// Whether the process does not exist any more; `None` if its id says nothing here.
fn is_known_to_be_gone(dir: &PrivateDir) -> Option<bool> {
    let (pid, started) = process_of(dir.path().file_name()?.to_str()?)?;
    let ring = ring_names(dir).into_iter().next()?;
    let namespace = pid_namespace_of(&dir.open_file(&ring).ok()?).ok()?;
    let comparable = namespace != 0 && namespace == process::pid_namespace();
    comparable.then(|| !process::exists(pid, started))
}

/// The process that a directory belongs to, by its name: `PID-START`, or `PID-START-NUMBER`.
fn process_of(name: &str) -> Option<(u32, u64)> {
    let mut parts = name.split('-');
    let process = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    let number = parts.next().map(str::parse::<u64>);
    (matches!(number, None | Some(Ok(_))) && parts.next().is_none()).then_some(process)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_directories_are_processes() {
        assert_eq!(process_of("7-4711"), Some((7, 4711)));
        assert_eq!(process_of("7-4711-2"), Some((7, 4711)));
        for name in ["", "7", "7-", "-7", "a-b", "7-4711-x", "7-4711-2-3", "metadata"] {
            assert_eq!(process_of(name), None, "{name}");
        }
    }
}
