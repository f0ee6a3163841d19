//! Connections to the notification socket: a message, and its answer.

use fileguard::GuardedFd;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};
use tracepoint_run_dir::local_socket::{connect, send};

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
    loop {
        match connect(dir.as_fd(), name) {
            Ok(socket) => return GuardedFd::new(socket),
            Err(error) if is_temporary(&error) && Instant::now() < deadline => std::thread::sleep(PAUSE),
            Err(error) => return Err(error),
        }
    }
}

fn is_temporary(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

/// Sends a message and reads its answer.
pub fn exchange(socket: &GuardedFd<OwnedFd>, message: &[u8], deadline: Instant) -> io::Result<i32> {
    let mut unsent = message;
    while !unsent.is_empty() {
        match send(socket.get()?.as_fd(), unsent) {
            Ok(sent) => unsent = &unsent[sent..],
            Err(error) if is_temporary(&error) => wait(socket, PollFlags::OUT, Some(deadline))?,
            // A listener that refuses this user has answered and closed the connection.
            Err(error) if matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset) => break,
            Err(error) => return Err(error),
        }
    }
    let (mut answer, mut have) = ([0; 4], 0);
    while have < answer.len() {
        match rustix::io::read(socket.get()?, &mut answer[have..]) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(part) => have += part,
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
    let timeout = left.and_then(|left| Timespec::try_from(left).ok());
    match poll(&mut [PollFd::new(socket.get()?, flags)], timeout.as_ref()) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}
