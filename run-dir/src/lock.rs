//! Locks on directories: one that a process holds on its own directory while it lives, and one that keeps two processes from cleaning up
//! the same directories.
//!
//! The lock of a process is on a file of its directory, `alive`, which it maps: a mapping keeps the open file, and with it the lock, when the
//! descriptor is closed. So it needs no descriptor, the program cannot release it by closing all descriptors, and a forked child does not
//! inherit it. Where that does not hold (the mapping of a file on an overlay is one of the file below), the descriptor is kept.
//!
//! A process that starts takes no lock that others share, since a thousand may start at once. It makes its directory and locks it. In
//! between, another process may take the directory for that of a dead one: who removes a directory holds its lock meanwhile, so the maker
//! notices, and makes another.

use crate::private_dir::PrivateDir;
use fileguard::{Checked, Kept};
use memmap2::{Advice, MmapOptions, MmapRaw};
use rustix::fs::{FlockOperation, flock};
use std::fs::File;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// Default timeout, and the interval between attempts. A stopped process that holds the lock must not stop this one.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(1);
pub(crate) const PAUSE: Duration = Duration::from_millis(2);

/// The file in the directory of a process on which the process holds its lock.
pub(crate) const ALIVE: &str = "alive";

/// A locked directory.
#[derive(Debug)]
pub struct Lock(Arc<Kept<File>>);

/// The lock of a process on its own directory.
#[derive(Debug)]
pub struct OwnLock {
    /// The process that holds it: a forked child has no mapping at its address, or another one.
    process: u32,
    map: Option<MmapRaw>,
    /// Without a mapping that holds the lock.
    file: Option<Arc<Kept<File>>>,
}

impl Lock {
    /// Waits for the lock, for at most a second.
    pub fn take(dir: &PrivateDir) -> io::Result<Self> {
        Self::take_within(dir, TIMEOUT)
    }

    /// Waits for the lock, for at most `timeout`.
    pub fn take_within(dir: &PrivateDir, timeout: Duration) -> io::Result<Self> {
        let fd = dir.reopen()?;
        for _ in 0..=timeout.as_millis() / PAUSE.as_millis() {
            match flock(&fd, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Self(fd.keep())),
                Err(rustix::io::Errno::WOULDBLOCK) => std::thread::sleep(PAUSE),
                Err(errno) => return Err(errno.into()),
            }
        }
        Err(io::Error::new(io::ErrorKind::TimedOut, "another process holds the lock for too long"))
    }
}

/// How many directories are cleaned up by every process that starts.
const ALWAYS_CLEANED: usize = 32;

/// Returns whether this process is to clean up among `directories`: one process in so many that each examines a few dozen of them on average.
pub fn is_turn_to_clean(directories: usize) -> bool {
    let share = (directories / ALWAYS_CLEANED).max(1) as u32;
    std::process::id().is_multiple_of(share)
}

/// Locks `dir`, which this process has just made in `parent` as `name`, for as long as the value lives; `None` if another process has removed
/// it meanwhile.
pub fn lock_own(parent: &PrivateDir, name: &str, dir: &PrivateDir) -> io::Result<Option<OwnLock>> {
    for _ in 0..=TIMEOUT.as_millis() / PAUSE.as_millis() {
        let file = match alive_file(dir) {
            Err(_) if !is_named(parent, name, dir) => return Ok(None),
            file => file?,
        };
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            // Who held the lock before has removed the directory by now, or leaves it.
            Ok(()) if is_named(parent, name, dir) => return OwnLock::of(file, dir).map(Some),
            // Another process is looking whether it is locked, or removes it.
            Err(rustix::io::Errno::WOULDBLOCK) if is_named(parent, name, dir) => std::thread::sleep(PAUSE),
            Ok(()) | Err(rustix::io::Errno::WOULDBLOCK) => return Ok(None),
            Err(errno) => return Err(errno.into()),
        }
    }
    Err(io::Error::new(io::ErrorKind::TimedOut, "another process holds the lock for too long"))
}

/// Opens or makes the file whose lock says that the process of `dir` lives.
fn alive_file(dir: &PrivateDir) -> io::Result<Checked<File>> {
    loop {
        match dir.create_file(ALIVE, 0) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => match dir.open_to_change(ALIVE) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                opened => return opened,
            },
            made => return made,
        }
    }
}

impl OwnLock {
    /// Keeps the lock on `file`, which is the one of `dir`.
    fn of(file: Checked<File>, dir: &PrivateDir) -> io::Result<Self> {
        let process = std::process::id();
        // The file stays empty: nothing is accessed through the mapping.
        let map = MmapOptions::new().len(1).map_raw(&*file).ok();
        let map = map.filter(|map| map.advise(Advice::DontFork).is_ok());
        drop(file);
        if map.is_some() && is_locked(dir)? {
            return Ok(Self { process, map, file: None });
        }
        let file = alive_file(dir)?;
        flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        Ok(Self { process, map: None, file: Some(file.keep()) })
    }

    /// Takes the lock again if it was on a descriptor that the program has closed.
    pub fn renew(&mut self, dir: &PrivateDir) -> io::Result<()> {
        if self.file.as_ref().is_some_and(|file| !file.is_open()) {
            let file = alive_file(dir)?;
            flock(&file, FlockOperation::NonBlockingLockExclusive)?;
            self.file = Some(file.keep());
        }
        Ok(())
    }
}

impl Drop for OwnLock {
    fn drop(&mut self) {
        if self.process != std::process::id() {
            std::mem::forget(self.map.take());
        } else if let Some(Ok(file)) = self.file.as_ref().map(|file| file.get()) {
            // A child forked meanwhile shares the lock, so closing alone would not release it. Fails only for a bad descriptor.
            let _ = flock(file, FlockOperation::Unlock);
        }
    }
}

/// Returns whether `dir` is still called `name` in `parent`.
fn is_named(parent: &PrivateDir, name: &str, dir: &PrivateDir) -> bool {
    parent.stamp(name).is_ok_and(|(inode, _)| dir.stat().is_ok_and(|own| own.st_ino == inode))
}

/// Removes `dir`, which was called `name` in `parent`, by `remove`, holding its lock. If another process holds it, removes it only if
/// `is_dead` says that its owner is.
///
/// The owner may have removed it meanwhile, and made another one of the same name. That one stays: while the lock is held, the name of `dir`
/// does not change, because its owner has it no longer.
pub(crate) fn remove_locked(
    (parent, name): (&PrivateDir, &str),
    dir: &PrivateDir,
    is_dead: impl FnOnce() -> bool,
    remove: impl FnOnce(),
) {
    let lock = lock_alive(dir);
    if (lock.is_ok() || is_dead()) && is_named(parent, name, dir) {
        remove();
    }
}

/// Takes the lock of the process of `dir`, which has ended.
fn lock_alive(dir: &PrivateDir) -> io::Result<Lock> {
    let file = alive_file(dir)?;
    flock(&file, FlockOperation::NonBlockingLockExclusive)?;
    Ok(Lock(file.keep()))
}

impl Drop for Lock {
    fn drop(&mut self) {
        // A child forked meanwhile shares the lock, so closing alone would not release it. Fails only for a bad descriptor.
        let _ = self.0.get().map(|fd| flock(fd, FlockOperation::Unlock));
    }
}

/// Whether any process, this one included, holds the lock of the process of `dir`.
pub fn is_locked(dir: &PrivateDir) -> io::Result<bool> {
    let file = match dir.open_file(ALIVE) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        opened => opened?,
    };
    match flock(&file, FlockOperation::NonBlockingLockShared) {
        Ok(()) => {
            flock(&file, FlockOperation::Unlock)?;
            Ok(false)
        }
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(true),
        Err(errno) => Err(errno.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Daemons and sandboxes close all descriptors, and children of a fork keep theirs.
    #[test]
    fn the_lock_of_a_process_needs_no_descriptor() -> Result<(), Box<dyn std::error::Error>> {
        let temp = tempfile::tempdir_in("/dev/shm")?;
        let parent = PrivateDir::at(temp.path())?;
        let dir = parent.make_subdir("1-1")?;
        assert!(!is_locked(&dir)?);
        let lock = lock_own(&parent, "1-1", &dir)?.ok_or("nobody has removed it")?;
        assert!(lock.file.is_none(), "a file in memory");
        assert!(is_locked(&dir)?);
        remove_locked((&parent, "1-1"), &dir, || false, || panic!("it lives"));
        drop(lock);
        assert!(!is_locked(&dir)?);
        let mut removed = false;
        remove_locked((&parent, "1-1"), &dir, || false, || removed = true);
        assert!(removed);
        Ok(())
    }
}
