//! The calls of Linux that a dt file needs: for its lock, its space, and a program that may close it.

use fileguard::{CheckedFd, ReopenableFd};
use rustix::fs::{FallocateFlags, FlockOperation, OFlags, fallocate, flock, fstatvfs};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};
use std::fs::{File, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use tempfile::Builder;

/// Maximum number of attempts of an allocation that signals interrupt. Then the file gets its length without reserved space.
const ATTEMPTS: u32 = 16;

/// A file that is reopened if the program has closed it.
pub(super) type KeptFile = ReopenableFd<File>;

/// Keeps a file that is open at `path`. It is locked again when it is reopened.
pub(super) fn keep(file: File, path: &Path) -> io::Result<KeptFile> {
    Ok(ReopenableFd::keeping(CheckedFd::of(file)?, path, OFlags::RDWR)?.prepared(lock))
}

/// Locks a file, or fails if another process has locked it.
pub(super) fn lock(file: &File) -> io::Result<()> {
    Ok(flock(file, FlockOperation::NonBlockingLockExclusive)?)
}

/// Gives the file its rights: the umask applies, as for any new file.
pub(super) fn with_rights<'a, 'b, 'c>(builder: &'c mut Builder<'a, 'b>) -> &'c mut Builder<'a, 'b> {
    builder.permissions(Permissions::from_mode(0o666))
}

/// Returns whether both are of the same file.
pub(super) fn is_same(one: &Metadata, other: &Metadata) -> bool {
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

/// Extends the file to `length` bytes by zeros, and reserves their space. Returns `false` if only the length can be set.
pub(super) fn reserve(file: &File, length: u64) -> io::Result<bool> {
    // Beyond the limit on file sizes, the program would receive SIGXFSZ.
    if getrlimit(Resource::Fsize).current.is_some_and(|limit| length > limit) {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    // Some file systems allocate all free space before they detect that it is not enough.
    let free = fstatvfs(file)?;
    let there = file.metadata()?.len();
    let more = length.saturating_sub(there);
    if more > free.f_bavail.saturating_mul(free.f_frsize) {
        return Err(io::ErrorKind::StorageFull.into());
    }
    if more == 0 {
        return Ok(false);
    }
    match repeated(|| fallocate(file, FallocateFlags::empty(), there, more)) {
        Ok(()) => Ok(true),
        Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Repeats a call interrupted by a signal, a limited number of times: some file systems restart the operation, and would never finish under
/// frequent signals.
fn repeated<T>(mut call: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    for _ in 1..ATTEMPTS {
        match call() {
            Err(Errno::INTR) => {}
            outcome => return outcome,
        }
    }
    call()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interrupted_call_is_repeated_a_bounded_number_of_times() {
        let mut calls = 0;
        let mut interrupted = |times, then| {
            calls = 0;
            let outcome = repeated(|| {
                calls += 1;
                if calls > times { then } else { Err(Errno::INTR) }
            });
            (outcome, calls)
        };
        assert_eq!(interrupted(0, Ok(())), (Ok(()), 1));
        assert_eq!(interrupted(3, Ok(())), (Ok(()), 4));
        assert_eq!(interrupted(3, Err(Errno::NOSPC)), (Err(Errno::NOSPC), 4));
        assert_eq!(interrupted(u32::MAX, Ok(())), (Err(Errno::INTR), ATTEMPTS));
    }
}
