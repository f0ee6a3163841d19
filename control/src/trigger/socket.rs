//! The notification socket: `notify` in the run directory.
//!
//! ```text
//!   no socket ──bind──▶ owned ──end──▶ no socket
//!                         │ killed
//!                         ▼
//!                       stale: connecting is refused ──the next listener removes it──▶ owned
//! ```
//!
//! The owner holds a lock on `notify.lock`, which the kernel releases when the owner ends, by whatever signal: who has the lock may remove
//! a socket, because its owner is gone. The lock's file stays.

use super::error::TriggerError;
use super::peer::peer_of;
use fileguard::Kept;
use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags, chmodat, chownat, flock};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, listen, socket_with};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tracepoint_run_dir::group::group;
use tracepoint_run_dir::private_dir::PrivateDir;

/// The name of the socket.
pub(super) const NOTIFY: &str = "notify";
const LOCK: &str = "notify.lock";
/// How many connections may wait to be accepted.
const BACKLOG: i32 = 128;
/// The interval between attempts to connect while the backlog is full.
const PAUSE: Duration = Duration::from_millis(5);

/// A socket that this process owns. It is removed on drop.
#[derive(Debug)]
pub(super) struct OwnedSocket {
    dir: PrivateDir,
    pub(super) fd: OwnedFd,
    _lock: Arc<Kept<File>>,
}

impl OwnedSocket {
    /// Makes the socket in the run directory, for this user and the shared group.
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
            let fd = stream()?;
            bind(&fd, &address(&dir.fd()?, NOTIFY)?)?;
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

/// Connects to the socket at `path`, without blocking; waits until `deadline` for a place in its backlog.
pub(super) fn connect_to(path: &Path, deadline: Instant) -> io::Result<Kept<OwnedFd>> {
    let invalid = || io::Error::new(io::ErrorKind::InvalidInput, "it is no path of a file");
    let (parent, name) = (path.parent().ok_or_else(invalid)?, path.file_name().ok_or_else(invalid)?);
    let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
    let dir = rustix::fs::open(parent, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let address = address(&dir, name)?;
    loop {
        let fd = stream()?;
        match connect(&fd, &address) {
            Ok(()) => return Kept::new(fd),
            Err(Errno::AGAIN | Errno::INTR) if Instant::now() < deadline => std::thread::sleep(PAUSE),
            Err(errno) => return Err(errno.into()),
        }
    }
}

/// The process that made the socket, if it still listens.
pub(super) fn owner(path: &Path) -> Option<u32> {
    let fd = connect_to(path, Instant::now()).ok()?;
    peer_of(fd.get().ok()?).ok()?.pid.try_into().ok()
}

fn stream() -> rustix::io::Result<OwnedFd> {
    socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK, None)
}

/// The socket's path through the open directory, so that it fits a socket address however long the directory's path is.
fn address(dir: &impl AsFd, name: impl AsRef<Path>) -> rustix::io::Result<SocketAddrUnix> {
    SocketAddrUnix::new(Path::new(&format!("/proc/self/fd/{}", dir.as_fd().as_raw_fd())).join(name))
}
