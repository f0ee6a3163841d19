//! Connections to the notification socket: a message, and its answer.

use fileguard::GuardedFd;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType, connect, recv, send, socket_with,
};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

/// The name of the socket.
pub const NOTIFY: &str = "notify";
/// The interval between attempts to connect while the backlog is full.
const PAUSE: Duration = Duration::from_millis(5);

/// Connects to the socket at `path`, without blocking; waits until `deadline` for a place in its backlog.
pub fn connect_to(path: &Path, deadline: Instant) -> io::Result<GuardedFd<OwnedFd>> {
    let invalid = || io::Error::new(io::ErrorKind::InvalidInput, "it is no path of a file");
    let (parent, name) = (path.parent().ok_or_else(invalid)?, path.file_name().ok_or_else(invalid)?);
    let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
    let dir = rustix::fs::open(parent, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let address = address(&dir, name)?;
    loop {
        let fd = stream()?;
        match connect(&fd, &address) {
            Ok(()) => return GuardedFd::new(fd),
            Err(Errno::AGAIN | Errno::INTR) if Instant::now() < deadline => std::thread::sleep(PAUSE),
            Err(errno) => return Err(errno.into()),
        }
    }
}

/// Creates a non-blocking socket.
pub fn stream() -> rustix::io::Result<OwnedFd> {
    socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK, None)
}

/// Returns the socket's address through the open directory, so that it fits regardless of the length of the directory's path.
pub fn address(dir: &impl AsFd, name: impl AsRef<Path>) -> rustix::io::Result<SocketAddrUnix> {
    SocketAddrUnix::new(Path::new(&format!("/proc/self/fd/{}", dir.as_fd().as_raw_fd())).join(name))
}

/// Sends a message and reads its answer.
pub fn exchange(socket: &GuardedFd<OwnedFd>, message: &[u8], deadline: Instant) -> io::Result<i32> {
    let mut unsent = message;
    while !unsent.is_empty() {
        match send(socket.get()?, unsent, SendFlags::NOSIGNAL) {
            Ok(sent) => unsent = &unsent[sent..],
            Err(Errno::AGAIN | Errno::INTR) => wait(socket, PollFlags::OUT, Some(deadline))?,
            // A listener that refuses this user has answered and closed the connection.
            Err(Errno::PIPE | Errno::CONNRESET) => break,
            Err(errno) => return Err(errno.into()),
        }
    }
    let (mut answer, mut have) = ([0; 4], 0);
    while have < answer.len() {
        match recv(socket.get()?, &mut answer[have..], RecvFlags::empty()) {
            Ok((0, _)) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok((part, _)) => have += part,
            Err(Errno::AGAIN | Errno::INTR) => wait(socket, PollFlags::IN, Some(deadline))?,
            Err(errno) => return Err(errno.into()),
        }
    }
    #[expect(clippy::host_endian_bytes, reason = "the socket is local: answers have the byte order of the host")]
    Ok(i32::from_ne_bytes(answer))
}

/// Waits for the socket, until `deadline` if there is one.
pub fn wait(socket: &GuardedFd<OwnedFd>, flags: PollFlags, deadline: Option<Instant>) -> io::Result<()> {
    let left = match deadline {
        Some(deadline) => Some(deadline.checked_duration_since(Instant::now()).ok_or(io::ErrorKind::TimedOut)?),
        None => None,
    };
    let timeout =
        left.map(|left| Timespec { tv_sec: left.as_secs().cast_signed(), tv_nsec: left.subsec_nanos().into() });
    match poll(&mut [PollFd::new(socket.get()?, flags)], timeout.as_ref()) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}
