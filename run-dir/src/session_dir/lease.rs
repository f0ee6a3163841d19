//! Leases: assign the rings of processes to their consumer.
//!
//! A consumer holds a lock on one byte of the directory `rings` for each process whose rings it takes: the byte whose offset is the inode
//! of the process's directory. All these locks belong to one descriptor, so a consumer does not need one for each process. The kernel
//! releases them when the consumer dies.
//!
//! A directory cannot be opened for writing, and a descriptor open for reading allows only shared byte locks, which several consumers could
//! hold. A consumer therefore tests and locks while it holds the [lock](crate::lock) on the whole directory. A process that removes
//! directories of dead processes does the same.

use crate::private_dir::PrivateDir;
use nix::fcntl::{FcntlArg, fcntl};
use nix::libc;
use std::io;

/// Takes the lease on the process's directory with this inode, for as long as `rings` is open; `false` if another consumer has it. The
/// caller holds the lock on `rings`.
pub(super) fn take(rings: &PrivateDir, inode: u64) -> io::Result<bool> {
    if is_taken(rings, inode)? {
        return Ok(false);
    }
    fcntl(&*rings.fd()?, FcntlArg::F_OFD_SETLK(&byte(libc::F_RDLCK, inode)))?;
    Ok(true)
}

/// Releases it. Fails only for a bad descriptor.
pub(super) fn release(rings: &PrivateDir, inode: u64) {
    let _ = rings.fd().map(|fd| fcntl(&*fd, FcntlArg::F_OFD_SETLK(&byte(libc::F_UNLCK, inode))));
}

/// Returns whether another consumer than the opener of `rings` takes the rings in `dir`, a directory in `rings`. Returns true in doubt.
pub(super) fn has_consumer(rings: &PrivateDir, dir: &PrivateDir) -> bool {
    dir.stat().and_then(|stat| is_taken(rings, stat.st_ino)).unwrap_or(true)
}

fn is_taken(rings: &PrivateDir, inode: u64) -> io::Result<bool> {
    let mut found = byte(libc::F_WRLCK, inode);
    fcntl(&*rings.fd()?, FcntlArg::F_OFD_GETLK(&mut found))?;
    Ok(i32::from(found.l_type) != libc::F_UNLCK)
}

fn byte(kind: i32, offset: u64) -> libc::flock {
    // The kernel refuses offsets beyond the signed range; the inodes of file systems in memory are counted from 1.
    let (l_type, l_start) = (kind as libc::c_short, (offset & (i64::MAX as u64 >> 1)).cast_signed());
    libc::flock { l_type, l_whence: libc::SEEK_SET as libc::c_short, l_start, l_len: 1, l_pid: 0 }
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
