//! The file with the sum of the ring memory of all processes of a session: `memory`, a page. [`MappedMemorySum`] maps it.
//!
//! ```text
//!   sessions/NAME/memory     u64  bytes that are reserved for rings
//!                            u64  CLOCK_MONOTONIC in ns before which they are not counted again
//! ```
//!
//! A process creates its directory before it opens the file, and the file is removed when no process has a directory. Both happen under a
//! lock. Processes that open the file share the lock, because a thousand may do so at once.
//!
//! [`MappedMemorySum`]: crate::ring_files::MappedMemorySum

use super::RINGS;
use crate::lock::{PAUSE, TIMEOUT};
use crate::private_dir::PrivateDir;
use fileguard::CheckedFd;
use rustix::fs::{FlockOperation, flock, fstat};
use rustix::io::Errno;
use std::fs::File;
use std::io;

/// Its name in the directory of a session.
pub const MEMORY: &str = "memory";
/// Its size in bytes: a page.
pub const MEMORY_SIZE: usize = 4096;

/// Opens or creates the file of a session in which this process has a directory. The file stays as long as that directory exists.
pub(crate) fn open(session: &PrivateDir) -> io::Result<CheckedFd<File>> {
    let file = locked(session, FlockOperation::NonBlockingLockShared)?;
    PrivateDir::allocate(&file, MEMORY_SIZE as u64)?;
    // A child forked meanwhile shares the lock, so closing alone would not release it. Fails only for a bad descriptor.
    let _ = flock(&file, FlockOperation::Unlock);
    Ok(file)
}

/// Removes the file of a session, if no process has a directory in it.
pub(super) fn remove_unused(session: &PrivateDir) {
    let is_unused = || session.stamp(RINGS).is_err();
    if session.stamp(MEMORY).is_ok() && is_unused() {
        let lock = locked(session, FlockOperation::NonBlockingLockExclusive);
        if is_unused() {
            session.remove_file(MEMORY);
        }
        let _ = lock.map(|file| flock(&file, FlockOperation::Unlock));
    }
}

/// Opens or creates the file, and waits for the lock on it, for at most a second.
fn locked(session: &PrivateDir, lock: FlockOperation) -> io::Result<CheckedFd<File>> {
    for _ in 0..=TIMEOUT.as_millis() / PAUSE.as_millis() {
        let file = session.open_or_create(MEMORY, MEMORY_SIZE as u64)?;
        match flock(&file, lock) {
            // The previous holder of the lock may have removed the file.
            Ok(())
                if session.stamp(MEMORY).is_ok_and(|(inode, _)| fstat(&file).is_ok_and(|own| own.st_ino == inode)) =>
            {
                return Ok(file);
            }
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => std::thread::sleep(PAUSE),
            Err(errno) => return Err(errno.into()),
        }
    }
    Err(io::Error::new(io::ErrorKind::TimedOut, "another process holds the lock for too long"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_stays_while_a_process_has_a_directory() -> Result<(), Box<dyn std::error::Error>> {
        let temp = tempfile::tempdir_in("/dev/shm")?;
        let session = PrivateDir::at(temp.path())?;
        session.subdir(RINGS)?;
        let (first, second) = (open(&session)?, open(&session)?);
        assert_eq!(fstat(&first)?.st_ino, fstat(&second)?.st_ino);
        remove_unused(&session);
        assert!(session.stamp(MEMORY).is_ok(), "a process may use it");
        session.remove_empty(RINGS);
        remove_unused(&session);
        assert_eq!(session.names()?, [""; 0]);
        Ok(())
    }
}
