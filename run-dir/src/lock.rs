//! Locks on directories. A process holds a lock on its own directory while it lives; another lock keeps two processes from cleaning up the
//! same directories.
//!
//! The lock of a process is on the file `alive` of its directory. The process maps this file: a mapping keeps the open file, and with it
//! the lock, after the descriptor is closed. Therefore the lock needs no descriptor, the program cannot release it by closing all
//! descriptors, and a forked child does not inherit it. Where a mapping does not keep the lock (on an overlay, the mapping refers to the
//! underlying file), the descriptor is kept.
//!
//! A process that starts takes no shared lock, because a thousand may start at once. It creates its directory and locks it. In between,
//! another process may mistake the directory for that of a dead process. The remover of a directory holds its lock meanwhile, so the
//! creator notices, and creates another directory.

use crate::private_dir::PrivateDir;
use fileguard::{CheckedFd, GuardedFd};
use memmap2::{Advice, MmapOptions, MmapRaw};
use rustix::fs::{FlockOperation, flock};
use std::fs::File;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Default timeout, and the interval between attempts. A stopped process that holds the lock must not stop this one.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(1);
pub(crate) const PAUSE: Duration = Duration::from_millis(2);

/// The lock file of a process, in its directory.
pub(crate) const ALIVE: &str = "alive";

/// A locked directory.
#[derive(Debug)]
pub struct Lock(Arc<GuardedFd<File>>);

/// The lock of a process on its own directory.
#[derive(Debug)]
pub struct OwnLock {
    /// The process that holds it. In a forked child, the address is unmapped, or belongs to another mapping.
    process: u32,
    map: Option<MmapRaw>,
    /// The descriptor that holds the lock if no mapping does.
    file: Option<Arc<GuardedFd<File>>>,
}

impl Lock {
    /// Waits for the lock, for at most a second.
    pub fn take(dir: &PrivateDir) -> io::Result<Self> {
        Self::take_within(dir, TIMEOUT)
    }

    /// Waits for the lock, for at most `timeout`.
    pub fn take_within(dir: &PrivateDir, timeout: Duration) -> io::Result<Self> {
        Self::wait_for(dir.reopen()?, timeout, "the lock")
    }

    /// Waits for the lock on an open file or directory, for at most `timeout`. `what` names the lock in the error.
    pub(crate) fn wait_for(file: CheckedFd<File>, timeout: Duration, what: &str) -> io::Result<Self> {
        let end = Instant::now() + timeout;
        loop {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Self(file.keep())),
                Err(rustix::io::Errno::WOULDBLOCK) if Instant::now() < end => std::thread::sleep(PAUSE),
                Err(rustix::io::Errno::WOULDBLOCK) => {
                    let text = format!("another process holds {what} for too long");
                    return Err(io::Error::new(io::ErrorKind::TimedOut, text));
                }
                Err(errno) => return Err(errno.into()),
            }
        }
    }
}

/// Number of directories that every starting process cleans up.
const ALWAYS_CLEANED: usize = 32;

/// Returns whether this process has to clean up among `directories`. A fraction of the processes does so, such that each examines a few
/// dozen directories on average.
pub fn is_turn_to_clean(directories: usize) -> bool {
    let share = (directories / ALWAYS_CLEANED).max(1) as u32;
    std::process::id().is_multiple_of(share)
}

/// Locks `dir`, which this process has just created in `parent` as `name`, for the lifetime of the value; `None` if another process has
/// removed it meanwhile.
pub fn lock_own(parent: &PrivateDir, name: &str, dir: &PrivateDir) -> io::Result<Option<OwnLock>> {
    for _ in 0..=TIMEOUT.as_millis() / PAUSE.as_millis() {
        let file = match alive_file(dir) {
            Err(_) if !is_named(parent, name, dir) => return Ok(None),
            file => file?,
        };
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            // The previous holder of the lock has removed the directory by now, or keeps it.
            Ok(()) if is_named(parent, name, dir) => return OwnLock::of(file, dir).map(Some),
            // Another process is testing the lock, or removing the directory.
            Err(rustix::io::Errno::WOULDBLOCK) if is_named(parent, name, dir) => std::thread::sleep(PAUSE),
            Ok(()) | Err(rustix::io::Errno::WOULDBLOCK) => return Ok(None),
            Err(errno) => return Err(errno.into()),
        }
    }
    Err(io::Error::new(io::ErrorKind::TimedOut, "another process holds the lock for too long"))
}

/// Opens or creates the file whose lock shows that the process of `dir` lives.
fn alive_file(dir: &PrivateDir) -> io::Result<CheckedFd<File>> {
    dir.open_or_create(ALIVE, 0)
}

impl OwnLock {
    /// Keeps the lock on `file`, the lock file of `dir`.
    fn of(file: CheckedFd<File>, dir: &PrivateDir) -> io::Result<Self> {
        let process = std::process::id();
        // The file stays empty: the mapping is never accessed.
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

/// Removes `dir`, called `name` in `parent`, by calling `remove` while holding its lock. If another process holds the lock, removes it only
/// if `is_dead` returns that the owner is dead.
///
/// The owner may have removed it meanwhile, and created another directory of the same name. That directory stays: while the lock is held,
/// the name of `dir` does not change, because the owner no longer uses it.
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
    Lock::wait_for(alive_file(dir)?, Duration::ZERO, "the lock")
}

impl Drop for Lock {
    fn drop(&mut self) {
        // A child forked meanwhile shares the lock, so closing alone would not release it. Fails only for a bad descriptor.
        let _ = self.0.get().map(|fd| flock(fd, FlockOperation::Unlock));
    }
}

/// Returns whether any process, including this one, holds the process lock of `dir`.
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

    /// Daemons and sandboxes close all descriptors, and forked children keep theirs.
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
