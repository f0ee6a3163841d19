//! The lock on a directory, for as long as it is looked at and changed as a whole.

use crate::private_dir::PrivateDir;
use rustix::fs::{FlockOperation, flock};
use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

/// How often the lock is tried, and the pause between: a stopped process that holds it must not stop us.
const TRIES: u32 = 100;
const PAUSE: Duration = Duration::from_millis(2);

/// A directory, locked.
#[derive(Debug)]
pub(super) struct Lock(OwnedFd);

impl Lock {
    /// Waits for the lock, for 200 ms at most.
    pub(super) fn take(dir: &PrivateDir) -> io::Result<Self> {
        let fd = dir.reopen()?;
        for _ in 0..TRIES {
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
pub(super) fn is_locked(dir: &PrivateDir) -> io::Result<bool> {
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
