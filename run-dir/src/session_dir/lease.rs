//! Leases: assign the rings of processes to their consumer.
//!
//! A consumer holds a lock on one byte of the directory `rings` for each process whose rings it takes: the byte whose offset is the inode
//! of the process's directory. All these locks belong to one descriptor, so a consumer does not need one for each process. The kernel
//! releases them when the consumer dies.
//!
//! A directory cannot be opened for writing, and a descriptor open for reading allows only shared byte locks, which several consumers could
//! hold. A consumer therefore tests and locks while it holds the [lock](crate::lock) on the whole directory. A process that removes
//! directories of dead processes does the same.
#![expect(unsafe_code, reason = "locks that belong to a descriptor have no safe interface")]

use crate::private_dir::PrivateDir;
use std::ffi::c_int;
use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// Takes the lease on the process's directory with this inode, for as long as `rings` is open; `false` if another consumer has it. The
/// caller holds the lock on `rings`.
pub(super) fn take(rings: &PrivateDir, inode: u64) -> io::Result<bool> {
    if is_taken(rings, inode)? {
        return Ok(false);
    }
    call(rings, libc::F_OFD_SETLK, libc::F_RDLCK, inode)?;
    Ok(true)
}

/// Releases it. Fails only for a bad descriptor.
pub(super) fn release(rings: &PrivateDir, inode: u64) {
    let _ = call(rings, libc::F_OFD_SETLK, libc::F_UNLCK, inode);
}

/// Returns whether another consumer than the opener of `rings` takes the rings in `dir`, a directory in `rings`. Returns true in doubt.
pub(super) fn has_consumer(rings: &PrivateDir, dir: &PrivateDir) -> bool {
    dir.stat().and_then(|stat| is_taken(rings, stat.st_ino)).unwrap_or(true)
}

fn is_taken(rings: &PrivateDir, inode: u64) -> io::Result<bool> {
    Ok(call(rings, libc::F_OFD_GETLK, libc::F_WRLCK, inode)? != libc::F_UNLCK)
}

/// Sets a lock of this kind on the byte at `offset`, or returns the kind that prevents it.
fn call(rings: &PrivateDir, command: c_int, kind: c_int, offset: u64) -> io::Result<c_int> {
    // The kernel refuses offsets beyond the signed range; the inodes of file systems in memory are counted from 1.
    let (l_type, l_start) = (kind as libc::c_short, (offset & (i64::MAX as u64 >> 1)).cast_signed());
    let mut byte = libc::flock { l_type, l_whence: libc::SEEK_SET as libc::c_short, l_start, l_len: 1, l_pid: 0 };
    // SAFETY: the descriptor is open while it is borrowed, and both commands take a pointer to such a value.
    let result = unsafe { libc::fcntl(rings.fd()?.as_fd().as_raw_fd(), command, &raw mut byte) };
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(byte.l_type.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_consumer_takes_the_rings_of_a_process() -> Result<(), Box<dyn std::error::Error>> {
        let temp = tempfile::tempdir_in("/dev/shm")?;
        let [first, second] = [PrivateDir::at(temp.path())?, PrivateDir::at(temp.path())?];
        let [one, other] = [first.make_subdir("1-1")?, first.make_subdir("2-2")?];
        let inode = |dir: &PrivateDir| dir.stat().map(|stat| stat.st_ino);
        assert!(take(&first, inode(&one)?)? && !take(&second, inode(&one)?)?);
        assert!(has_consumer(&second, &one) && !has_consumer(&second, &other));
        assert!(take(&second, inode(&other)?)? && has_consumer(&first, &other));
        release(&first, inode(&one)?);
        assert!(!has_consumer(&second, &one));
        drop(second);
        assert!(!has_consumer(&first, &other), "closing releases it");
        Ok(())
    }
}
