//! Locks on directories: one that a process holds on its own directory while it lives, and one that keeps two processes from cleaning up
//! the same directories.
//!
//! A process that starts takes no lock that others share, since a thousand may start at once. It makes its directory and locks it. In
//! between, another process may take the directory for that of a dead one: who removes a directory holds its lock meanwhile, so the maker
//! notices, and makes another.

use crate::private_dir::PrivateDir;
use rustix::fs::{FlockOperation, flock};
use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

/// Default timeout, and the interval between attempts. A stopped process that holds the lock must not stop this one.
pub(super) const TIMEOUT: Duration = Duration::from_secs(1);
pub(super) const PAUSE: Duration = Duration::from_millis(2);

/// A locked directory.
#[derive(Debug)]
pub(crate) struct Lock(OwnedFd);

impl Lock {
    /// Waits for the lock, for at most a second.
    pub(crate) fn take(dir: &PrivateDir) -> io::Result<Self> {
        Self::take_within(dir, TIMEOUT)
    }

    /// Waits for the lock, for at most `timeout`.
    pub(crate) fn take_within(dir: &PrivateDir, timeout: Duration) -> io::Result<Self> {
        let fd = dir.reopen()?;
        for _ in 0..=timeout.as_millis() / PAUSE.as_millis() {
            match flock(&fd, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Self(fd)),
                Err(rustix::io::Errno::WOULDBLOCK) => std::thread::sleep(PAUSE),
                Err(errno) => return Err(errno.into()),
            }
        }
        Err(io::Error::new(io::ErrorKind::TimedOut, "another process holds the lock for too long"))
    }
}

/// How many directories are cleaned up by every process that starts.
const ALWAYS_CLEANED: usize = 32;

/// Whether this process is to clean up among `directories`: one process in so many that each examines a few dozen of them on average.
pub(crate) fn is_turn_to_clean(directories: usize) -> bool {
    let share = (directories / ALWAYS_CLEANED).max(1) as u32;
    std::process::id().is_multiple_of(share)
}

/// Locks `dir`, which this process has just made in `parent` as `name`, for as long as it lives; `false` if another process has removed it
/// meanwhile.
pub(crate) fn lock_own(parent: &PrivateDir, name: &str, dir: &PrivateDir) -> io::Result<bool> {
    for _ in 0..=TIMEOUT.as_millis() / PAUSE.as_millis() {
        match flock(dir, FlockOperation::NonBlockingLockExclusive) {
            // Who held the lock before has removed the directory by now, or leaves it.
            Ok(()) => return Ok(is_named(parent, name, dir)),
            // Another process is looking whether it is locked, or removes it.
            Err(rustix::io::Errno::WOULDBLOCK) if is_named(parent, name, dir) => std::thread::sleep(PAUSE),
            Err(rustix::io::Errno::WOULDBLOCK) => return Ok(false),
            Err(errno) => return Err(errno.into()),
        }
    }
    Err(io::Error::new(io::ErrorKind::TimedOut, "another process holds the lock for too long"))
}

/// Whether `dir` is still called `name` in `parent`.
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
    let lock = Lock::take_within(dir, Duration::ZERO);
    if (lock.is_ok() || is_dead()) && is_named(parent, name, dir) {
        remove();
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // A child forked meanwhile shares the lock, so closing alone would not release it. Fails only for a bad descriptor.
        let _ = flock(&self.0, FlockOperation::Unlock);
    }
}

/// Whether any process, this one included, holds the lock on `dir`.
pub(crate) fn is_locked(dir: &PrivateDir) -> io::Result<bool> {
    let fd = dir.reopen()?;
    match flock(&fd, FlockOperation::NonBlockingLockShared) {
        Ok(()) => {
            flock(&fd, FlockOperation::Unlock)?;
            Ok(false)
        }
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(true),
        Err(errno) => Err(errno.into()),
    }
}
