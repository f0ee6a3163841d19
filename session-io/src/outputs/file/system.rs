//! What files of sinks need of Linux.

use fileguard::{CheckedFd, ReopenableFd};
use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};
use std::fs::File;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Flags for opening a file again.
const APPEND: OFlags = OFlags::WRONLY.union(OFlags::APPEND).union(OFlags::NONBLOCK);

/// A file that is reopened if the program has closed it.
pub(super) type KeptFile = ReopenableFd<File>;

/// Keeps a file that is open at `path`.
pub(super) fn keep(file: File, path: &Path) -> io::Result<KeptFile> {
    ReopenableFd::new(file, path, APPEND)
}

/// Opens the file for appending, with its length; `None` if another process is writing to it.
pub(super) fn open_alone(path: &Path) -> io::Result<Option<(KeptFile, u64)>> {
    // O_NONBLOCK: a FIFO without a reader, or a full one, must not block.
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let file = CheckedFd::of(File::options().append(true).create(true).custom_flags(flags).open(path)?)?;
    // Held while the file is open, here or in a forked child without an agent.
    if flock(&file, FlockOperation::NonBlockingLockExclusive) == Err(Errno::WOULDBLOCK) {
        return Ok(None);
    }
    let written = file.metadata()?.len();
    Ok(Some((ReopenableFd::keeping(file, path, APPEND)?.prepared(lock), written)))
}

/// Locks a file that was reopened after the program had closed it.
fn lock(file: &File) -> io::Result<()> {
    Ok(flock(file, FlockOperation::NonBlockingLockExclusive)?)
}

/// Returns the limit on the sizes of files.
pub(super) fn file_size_limit() -> u64 {
    getrlimit(Resource::Fsize).current.unwrap_or(u64::MAX)
}
