//! Local sockets that are files of the run directory: connecting and sending without blocking, which the standard library cannot do.
#![expect(
    unsafe_code,
    reason = "rustix has sockets with its feature `net`, which would double its time to build in every program with a session"
)]

use std::ffi::OsStr;
use std::io;
use std::mem::zeroed;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Connects to the socket `name` in the open directory `dir`. Fails with [`WouldBlock`](io::ErrorKind::WouldBlock) while its backlog is full.
///
/// The path leads through the descriptor, so that it fits regardless of the length of the directory's path.
pub fn connect(dir: BorrowedFd<'_>, name: &OsStr) -> io::Result<OwnedFd> {
    let path = Path::new(&format!("/proc/self/fd/{}", dir.as_raw_fd())).join(name);
    let path = path.as_os_str().as_bytes();
    // SAFETY: a structure of integers, for which zero is a valid value.
    let mut address: libc::sockaddr_un = unsafe { zeroed() };
    // The last byte stays 0.
    if path.len() >= address.sun_path.len() {
        return Err(io::Error::from_raw_os_error(libc::ENAMETOOLONG));
    }
    address.sun_family = libc::AF_UNIX as libc::sa_family_t;
    for (to, from) in address.sun_path.iter_mut().zip(path) {
        *to = libc::c_char::from_le_bytes([*from]);
    }
    let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: takes no pointers.
    let socket = unsafe { libc::socket(libc::AF_UNIX, kind, 0) };
    if socket < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a new descriptor, which nothing else owns.
    let socket = unsafe { OwnedFd::from_raw_fd(socket) };
    // SAFETY: the address is initialised, and has this size.
    let connected = unsafe {
        libc::connect(socket.as_raw_fd(), (&raw const address).cast(), size_of_val(&address) as libc::socklen_t)
    };
    if connected == 0 { Ok(socket) } else { Err(io::Error::last_os_error()) }
}

/// Sends the first of these bytes, without `SIGPIPE`; returns their number.
pub fn send(socket: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<usize> {
    // SAFETY: the bytes are readable.
    let sent = unsafe { libc::send(socket.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), libc::MSG_NOSIGNAL) };
    usize::try_from(sent).map_err(|_| io::Error::last_os_error())
}
