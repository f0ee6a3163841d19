//! A named pipe next to `session.toml` that shows whether the owner of a session is alive, in any pid namespace.
//!
//! The owner holds the pipe open for writing and never writes. When it ends, by any signal, the kernel closes the pipe: a reader's `poll`
//! returns, and a `read` returns 0 bytes. A process id has no meaning in another pid namespace; a pipe on a shared file system works in
//! all.
//!
//! ```text
//!   owner:  makes and opens the pipe ─▶ writes session.toml with `pipe = true` ─▶ … ─▶ removes the session, closes the pipe
//!   agent:  reads session.toml ─▶ opens the pipe ─▶ reads: 0 bytes if the owner has ended by then ─▶ polls
//! ```

use crate::private_dir::PrivateDir;
use fileguard::{CheckedFd, GuardedFd};
use rustix::fs::{FileType, Mode, OFlags, fstat, openat};
use rustix::io::Errno;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The name of the pipe.
pub const OWNER: &str = "owner";

/// The pipes that this process holds, by the ids of its sessions.
static HELD: Mutex<Vec<HeldPipe>> = Mutex::new(Vec::new());

type HeldPipe = (String, Arc<GuardedFd<OwnedFd>>);

fn held() -> MutexGuard<'static, Vec<HeldPipe>> {
    HELD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Creates the pipe of the session `id` in the session's directory and holds it until this process ends or releases it.
pub fn hold(dir: &PrivateDir, id: &str) -> io::Result<()> {
    let mut held = held();
    if !held.iter().any(|(of, _)| of == id) {
        // A pipe of an earlier session of that name.
        dir.remove_file(OWNER);
        dir.make_pipe(OWNER)?;
        // Open for reading as well, because a pipe without a reader cannot be opened for writing without blocking.
        held.push((id.to_owned(), open(dir, OFlags::RDWR)?.keep()));
    }
    Ok(())
}

/// Closes the pipe of the session `id`, if this process holds it.
pub fn release(id: &str) {
    held().retain(|(of, _)| of != id);
}

fn open(dir: &PrivateDir, access: OFlags) -> io::Result<CheckedFd<OwnedFd>> {
    let flags = access | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    fileguard::retried(|| CheckedFd::of(openat(dir.fd()?, OWNER, flags, Mode::empty())?))
}

/// Opens the pipe in the session's directory, to be polled; `None` if the owner has closed it.
pub fn watch(dir: &PrivateDir) -> io::Result<Option<CheckedFd<OwnedFd>>> {
    let pipe = open(dir, OFlags::RDONLY)?;
    if FileType::from_raw_mode(fstat(&pipe)?.st_mode) != FileType::Fifo {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "it is no pipe"));
    }
    match rustix::io::read(&pipe, &mut [0; 1]) {
        Ok(0) => Ok(None),
        Ok(_) | Err(Errno::AGAIN | Errno::INTR) => Ok(Some(pipe)),
        Err(errno) => Err(errno.into()),
    }
}
