//! The notification socket: `notify` in the run directory.
//!
//! ```text
//!   no socket ──bind──▶ owned ──end──▶ no socket
//!                         │ killed
//!                         ▼
//!                       stale: connecting is refused ──the next listener removes it──▶ owned
//! ```
//!
//! The owner holds a lock on `notify.lock`, which the kernel releases when the owner ends, by any signal. A process that holds the lock may
//! remove a socket, because its owner has ended. The lock file stays.

use super::peer::peer_of;
use fileguard::GuardedFd;
use rustix::fs::{AtFlags, FlockOperation, Mode, chmodat, chownat, flock};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen, socket_with};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;
use tracepoint_run_dir::group::group;
use tracepoint_run_dir::private_dir::PrivateDir;
use tracepoint_session_io::trigger::TriggerError;
use tracepoint_session_io::trigger::connection::{NOTIFY, connect_to};

const LOCK: &str = "notify.lock";
/// Maximum number of connections that wait to be accepted.
const BACKLOG: i32 = 128;

/// A socket owned by this process. It is removed on drop.
#[derive(Debug)]
pub(super) struct OwnedSocket {
    dir: PrivateDir,
    pub(super) fd: OwnedFd,
    _lock: Arc<GuardedFd<File>>,
}

impl OwnedSocket {
    /// Creates the socket in the run directory, for this user and the shared group.
    pub(super) fn bind(dir: PrivateDir) -> Result<Self, TriggerError> {
        let path = dir.path().join(NOTIFY);
        let lock = dir.append_file(LOCK).map_err(TriggerError::socket(&path))?;
        match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => return Err(TriggerError::Listening { pid: owner(&path).unwrap_or(0), path }),
            Err(errno) => return Err(TriggerError::socket(&path)(errno.into())),
        }
        dir.remove_file(NOTIFY);
        let made = || -> io::Result<_> {
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            let fd = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
            bind(&fd, &address(dir.fd()?.as_fd())?)?;
            // Set after the bind: other users cannot enter the directory.
            let mode = Mode::RUSR | Mode::WUSR;
            if let Some(group) = group() {
                chownat(dir.fd()?, NOTIFY, None, Some(group), AtFlags::SYMLINK_NOFOLLOW)?;
                chmodat(dir.fd()?, NOTIFY, mode | Mode::RGRP | Mode::WGRP, AtFlags::empty())?;
            } else {
                chmodat(dir.fd()?, NOTIFY, mode, AtFlags::empty())?;
            }
            listen(&fd, BACKLOG)?;
            Ok(fd)
        };
        let fd = made().map_err(TriggerError::socket(&path))?;
        Ok(Self { dir, fd, _lock: lock.keep() })
    }

    pub(super) fn path(&self) -> PathBuf {
        self.dir.path().join(NOTIFY)
    }
}

impl Drop for OwnedSocket {
    fn drop(&mut self) {
        self.dir.remove_file(NOTIFY);
    }
}

/// Returns the socket's address through the open directory, so that it fits regardless of the length of the directory's path.
fn address(dir: BorrowedFd<'_>) -> rustix::io::Result<SocketAddrUnix> {
    SocketAddrUnix::new(format!("/proc/self/fd/{}/{NOTIFY}", dir.as_raw_fd()))
}

/// Returns the process that created the socket, if it still listens.
pub(super) fn owner(path: &Path) -> Option<u32> {
    let fd = connect_to(path, Instant::now()).ok()?;
    peer_of(fd.get().ok()?).ok()?.pid.try_into().ok()
}
