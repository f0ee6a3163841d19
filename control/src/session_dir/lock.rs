//! The lock on a directory, for as long as it is looked at and changed as a whole.

use super::CONSUMER;
use crate::private_dir::PrivateDir;
use rustix::fs::{FlockOperation, flock};
use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

/// How long the lock is tried for, and the pause between: a stopped process that holds it must not stop us.
const PATIENCE: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(2);

/// A directory, locked.
#[derive(Debug)]
pub(crate) struct Lock(OwnedFd);

impl Lock {
    /// Waits for the lock, for a second at most.
    pub(crate) fn take(dir: &PrivateDir) -> io::Result<Self> {
        Self::take_within(dir, PATIENCE)
    }

    /// Waits for the lock, for `patience` at most.
    pub(crate) fn take_within(dir: &PrivateDir, patience: Duration) -> io::Result<Self> {
        let fd = dir.reopen()?;
        for _ in 0..=patience.as_millis() / PAUSE.as_millis() {
            match flock(&fd, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Self(fd)),
                Err(rustix::io::Errno::WOULDBLOCK) => std::thread::sleep(PAUSE),
                Err(errno) => return Err(errno.into()),
            }
        }
        Err(io::Error::new(io::ErrorKind::TimedOut, "another process does not give the lock back"))
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing alone would leave the lock to a child that was forked meanwhile. Fails only for a bad descriptor.
        let _ = flock(&self.0, FlockOperation::Unlock);
    }
}

/// Whether somebody has `dir` locked, this process included.
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

/// Whether another process takes the packets of the rings in `dir`.
pub(super) fn is_taken(dir: &PrivateDir) -> bool {
    let Ok(lease) = dir.open_file(CONSUMER) else { return false };
    match flock(&lease, FlockOperation::NonBlockingLockShared) {
        Ok(()) => {
            // Not by closing it: a forked child may have it open, too. Fails only for a bad descriptor.
            let _ = flock(&lease, FlockOperation::Unlock);
            false
        }
        Err(errno) => errno == rustix::io::Errno::WOULDBLOCK,
    }
}
