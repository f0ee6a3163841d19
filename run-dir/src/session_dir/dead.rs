//! Decides which processes of a session are alive, sums their ring memory, and removes directories of dead ones.
//!
//! A process holds the lock on its directory while it records. A forked child inherits the lock and may outlive the process; the
//! process is then recognised as dead by its id, provided that it belongs to the pid namespace of the calling process.

use super::lease::has_consumer;
use super::{KeepDead, METADATA};
use crate::layout::RING_SUFFIX;
use crate::layout::{SESSION, TRIGGERS};
use crate::lock::{is_locked, remove_locked};
use crate::private_dir::PrivateDir;
use crate::ring_identity::pid_namespace_of;
use std::cmp::Reverse;
use std::io;
use std::path::PathBuf;
use tracepoint_reader::process::{self, ProcessKey};

/// Returns the size of the ring files of all living processes, in bytes.
///
/// Costs a few system calls for each process, and one for each ring.
pub(super) fn memory_of_living(rings: &PrivateDir) -> io::Result<u64> {
    let mut sum = 0;
    for (_, dir) in process_dirs(rings)? {
        if is_alive(&dir) || has_consumer(rings, &dir) {
            sum += memory_of(&dir);
        }
    }
    Ok(sum)
}

/// Removes the directories of dead processes beyond the limits `keep`; the processes that died last are kept first. Returns the paths of
/// those kept. A directory that cannot be removed stays. Only one directory is open at a time.
pub(super) fn remove_old(rings: &PrivateDir, keep: KeepDead) -> Vec<PathBuf> {
    let mut dead = Vec::new();
    for (name, dir) in process_dirs(rings).into_iter().flatten() {
        // A remote consumer still drains the rings of this dead process, and removes the directory itself.
        if is_alive(&dir) || has_consumer(rings, &dir) {
            continue;
        }
        // Without metadata no event had been enabled yet, or a removal was interrupted.
        if dir.file_len(METADATA).is_err() {
            remove_dead(rings, &name, &dir);
        } else {
            dead.push((dir.changed(), name, memory_of(&dir)));
        }
    }
    dead.sort_by_key(|(changed, ..)| Reverse(*changed));
    let (mut kept, mut sum) = (Vec::new(), 0_u64);
    for (_, name, bytes) in &dead {
        sum = sum.saturating_add(*bytes);
        if kept.len() < keep.processes && sum <= keep.bytes {
            kept.push(rings.path().join(name));
        } else if let Ok(dir) = rings.open_subdir(name) {
            remove_dead(rings, name, &dir);
        }
    }
    kept
}

/// Returns the living processes that have started their session in code, and describe it next to its rings: each with its directory, and
/// whether it is in this process's pid namespace.
pub(super) fn living_in_code(rings: &PrivateDir) -> Vec<(ProcessKey, PrivateDir, bool)> {
    let dirs = process_dirs(rings).into_iter().flatten();
    let in_code = dirs.filter(|(_, dir)| dir.file_len(SESSION).is_ok() && is_alive(dir));
    let with_key = in_code.filter_map(|(name, dir)| Some((ProcessKey::of_directory(&name)?, key_here(&dir), dir)));
    with_key.map(|(key, here, dir)| (key, dir, here.is_some())).collect()
}

/// Removes the directory of a dead process.
fn remove_dead(rings: &PrivateDir, name: &str, dir: &PrivateDir) {
    remove_locked((rings, name), dir, || !is_alive(dir), || remove(rings, name, dir));
}

/// Removes the directory called `name`, unless its process still records or a consumer still drains it.
pub(super) fn remove_one(rings: &PrivateDir, name: &str) {
    let own = ProcessKey::of_directory(name).and_then(|_| rings.open_subdir(name).ok());
    if let Some(dir) = own.filter(|dir| !is_alive(dir) && !has_consumer(rings, dir)) {
        remove_dead(rings, name, &dir);
    }
}

/// Removes `dir`, called `name`, with its files. The metadata is removed first, so that an interrupted removal leaves nothing that looks
/// recoverable.
pub(crate) fn remove(rings: &PrivateDir, name: &str, dir: &PrivateDir) {
    dir.remove_file(METADATA);
    dir.remove_subdir(TRIGGERS);
    rings.remove_with_files(name, dir);
}

/// Returns the size of the ring files in `dir`, in bytes. A file that vanishes meanwhile counts as zero.
fn memory_of(dir: &PrivateDir) -> u64 {
    ring_names(dir).iter().map(|name| dir.file_len(name).unwrap_or(0)).sum()
}

/// Returns the directories of processes, with their names. Each is opened when the iterator reaches it. Entries not named PID-START are
/// ignored.
pub(super) fn process_dirs(rings: &PrivateDir) -> io::Result<impl Iterator<Item = (String, PrivateDir)>> {
    let open = |name: String| rings.open_subdir(&name).ok().map(|dir| (name, dir));
    Ok(rings.names()?.into_iter().filter(|name| ProcessKey::of_directory(name).is_some()).filter_map(open))
}

/// Returns the names of the ring files in `dir`; none if the directory has vanished.
pub(super) fn ring_names(dir: &PrivateDir) -> Vec<String> {
    dir.names().unwrap_or_default().into_iter().filter(|name| name.ends_with(RING_SUFFIX)).collect()
}

/// Returns whether the process of this directory still records; true if the lock cannot be tested.
pub(crate) fn is_alive(dir: &PrivateDir) -> bool {
    is_locked(dir).unwrap_or(true) && key_here(dir).is_none_or(ProcessKey::exists)
}

/// Returns the process of this directory; `None` if it is in another or an unknown pid namespace.
pub(super) fn key_here(dir: &PrivateDir) -> Option<ProcessKey> {
    let key = ProcessKey::of_directory(dir.path().file_name()?.to_str()?)?;
    let ring = ring_names(dir).into_iter().next()?;
    let namespace = pid_namespace_of(&*dir.open_file(&ring).ok()?).ok()?;
    (namespace != 0 && namespace == process::pid_namespace()).then_some(key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lock::lock_own;
    use rustix::fs::inotify;

    #[test]
    fn the_newest_directories_are_kept_by_number_and_bytes() -> Result<(), Box<dyn std::error::Error>> {
        let temp = tempfile::tempdir()?;
        let rings = PrivateDir::at(temp.path())?;
        for (age, name) in ["1-1", "2-2", "3-3", "4-4"].into_iter().enumerate() {
            let dir = rings.make_subdir(name)?;
            dir.put_whole(METADATA, b"")?;
            dir.create_file("0-0.ring", 100)?.set_len(100)?;
            let changed = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(100 - age as u64);
            std::fs::File::open(dir.path())?.set_modified(changed)?;
        }
        // Its process was killed before it wrote the metadata: no event was enabled.
        rings.make_subdir("5-5")?.create_file("0-0.ring", 100)?;
        let left = |keep| -> Vec<String> {
            let kept = remove_old(&rings, keep);
            let mut names: Vec<_> =
                kept.iter().filter_map(|path| path.file_name()?.to_str().map(str::to_owned)).collect();
            names.sort();
            let mut there = rings.names().unwrap_or_default();
            there.sort();
            assert_eq!(names, there);
            names
        };
        assert_eq!(left(KeepDead::ALL), ["1-1", "2-2", "3-3", "4-4"]);
        assert_eq!(left(KeepDead { processes: 3, bytes: 1000 }), ["1-1", "2-2", "3-3"]);
        assert_eq!(left(KeepDead { processes: 3, bytes: 250 }), ["1-1", "2-2"]);
        rings.make_subdir("6-6")?.put_whole(METADATA, b"")?;
        remove_one(&rings, "2-2");
        remove_one(&rings, "metadata");
        assert_eq!(left(KeepDead::ALL), ["1-1", "6-6"]);
        let alive = rings.open_subdir("6-6")?;
        let lock = lock_own(&rings, "6-6", &alive)?;
        remove_one(&rings, "6-6");
        assert_eq!(rings.names()?.len(), 2, "it lives");
        drop(lock);
        assert_eq!(left(KeepDead::NONE), [""; 0]);
        Ok(())
    }

    /// A process that ends a session and starts another makes a directory of the same name, which is empty at first.
    #[test]
    fn a_directory_that_was_made_again_stays() -> Result<(), Box<dyn std::error::Error>> {
        let temp = tempfile::tempdir()?;
        let rings = PrivateDir::at(temp.path())?;
        let before = rings.make_subdir("1-1")?;
        remove(&rings, "1-1", &before);
        rings.make_subdir("1-1")?;
        remove_dead(&rings, "1-1", &before);
        assert_eq!(rings.names()?, ["1-1"]);
        Ok(())
    }

    /// The removing process may be killed after any file.
    #[test]
    fn metadata_is_removed_first() -> Result<(), Box<dyn std::error::Error>> {
        let temp = tempfile::tempdir()?;
        let rings = PrivateDir::at(temp.path())?;
        let dir = rings.make_subdir("1-1")?;
        for name in ["0-0.ring", METADATA, super::super::OUTPUTS, "0-orphans.ring"] {
            dir.create_file(name, 0)?;
        }
        let watch = inotify::init(inotify::CreateFlags::NONBLOCK)?;
        inotify::add_watch(&watch, dir.path(), inotify::WatchFlags::DELETE)?;
        remove(&rings, "1-1", &dir);
        let mut buffer = [const { std::mem::MaybeUninit::uninit() }; 1024];
        let mut removed = inotify::Reader::new(&watch, &mut buffer);
        let first = removed.next()?;
        assert_eq!(first.file_name().and_then(|name| name.to_str().ok()), Some(METADATA));
        assert_eq!(rings.names()?, [""; 0]);
        Ok(())
    }

    #[test]
    fn directory_names_identify_processes() {
        let process = Some(ProcessKey::new(7, 4711));
        assert_eq!(ProcessKey::of_directory("7-4711"), process);
        assert_eq!(ProcessKey::of_directory("7-4711-2"), process);
        for name in ["", "7", "7-", "-7", "a-b", "7-4711-x", "7-4711-2-3", "metadata"] {
            assert_eq!(ProcessKey::of_directory(name), None, "{name}");
        }
    }
}
