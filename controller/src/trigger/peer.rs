//! Identifies the process at the other end of a socket.
#![expect(unsafe_code, reason = "the safe interface of rustix has no place for the pid 0")]

use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// Returns the process at the other end of a Unix socket. Its pid is 0 if it is in another pid namespace.
pub(super) fn peer_of(socket: impl AsFd) -> io::Result<libc::ucred> {
    let mut peer = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut size = size_of_val(&peer) as libc::socklen_t;
    // SAFETY: the descriptor is open while it is borrowed, and the kernel writes at most `size` bytes, which `peer` has.
    let result = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut peer).cast(),
            &raw mut size,
        )
    };
    if result == 0 { Ok(peer) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peer_of_a_pair_of_sockets_is_this_process() -> io::Result<()> {
        let (one, _other) = std::os::unix::net::UnixStream::pair()?;
        let peer = peer_of(&one)?;
        assert_eq!(u32::try_from(peer.pid), Ok(std::process::id()));
        assert_eq!(peer.uid, rustix::process::geteuid().as_raw());
        Ok(())
    }
}
