//! The lock on a directory, held while its entries are scanned or changed.

use super::CONSUMER;
use crate::private_dir::PrivateDir;
use rustix::fs::{FlockOperation, flock};
use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

/// Default timeout, and the interval between attempts. A stopped process that holds the lock must not stop this one.
const TIMEOUT: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(2);

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

/// Whether another process consumes the rings in `dir`.
pub(super) fn has_consumer(dir: &PrivateDir) -> bool {
    let Ok(lease) = dir.open_file(CONSUMER) else { return false };
    match flock(&lease, FlockOperation::NonBlockingLockShared) {
        Ok(()) => {
            // An explicit unlock: a forked child may hold the same descriptor open. Fails only for a bad descriptor.
            let _ = flock(&lease, FlockOperation::Unlock);
            false
        }
        Err(errno) => errno == rustix::io::Errno::WOULDBLOCK,
    }
}
