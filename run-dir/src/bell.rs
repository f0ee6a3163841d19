//! The bell: a datagram socket that wakes a process's agent. If the program closes its descriptor, another one takes its place.

use crate::group::group;
use crate::layout::BELL;
use crate::private_dir::PrivateDir;
use fileguard::{CheckedFd, GuardedFd};
use rustix::fs::{AtFlags, Mode, chmodat, chownat, renameat};
use rustix::io::Errno;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixDatagram;

/// The maximum length of a token, in bytes.
pub(crate) const MAX_TOKEN: usize = 64;

/// Makes a call with the socket's path through the open directory, so that it fits into a socket address regardless of the length of the
/// directory's path.
fn with_address<T>(dir: &PrivateDir, name: &str, call: impl Fn(&str) -> io::Result<T>) -> io::Result<T> {
    let fd = dir.fd()?;
    // If the program has closed the directory, the file does not exist.
    let or_closed = |error| if fd.is_open() { error } else { Errno::BADF.into() };
    call(&format!("/proc/self/fd/{}/{name}", fd.as_raw_fd())).map_err(or_closed)
}

/// This process's bell.
#[derive(Debug)]
pub struct Bell(GuardedFd<UnixDatagram>);

impl Bell {
    /// Creates the socket in the process's directory, which does not have one yet.
    pub fn make(dir: &PrivateDir) -> io::Result<Self> {
        Self::bind(dir, BELL)
    }

    fn bind(dir: &PrivateDir, name: &str) -> io::Result<Self> {
        let socket = GuardedFd::new(with_address(dir, name, |address| UnixDatagram::bind(address))?)?;
        socket.get()?.set_nonblocking(true)?;
        if let Some(group) = group() {
            // Set after the bind: other users cannot enter the directory.
            chownat(dir.fd()?, name, None, Some(group), AtFlags::SYMLINK_NOFOLLOW)?;
            chmodat(dir.fd()?, name, Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::WGRP, AtFlags::empty())?;
        }
        Ok(Self(socket))
    }

    /// Returns whether the program has left its descriptor open.
    pub fn is_open(&self) -> bool {
        self.0.is_open()
    }

    /// Replaces the socket by a new one. A concurrent ring reaches one of the two.
    pub fn renew(&mut self, dir: &PrivateDir) -> io::Result<()> {
        let name = PrivateDir::temporary(BELL);
        *self = fileguard::retried(|| {
            dir.remove_file(&name);
            let made = Self::bind(dir, &name)?;
            renameat(dir.fd()?, &name, dir.fd()?, BELL)?;
            Ok(made)
        })?;
        Ok(())
    }

    /// Returns the socket, which becomes readable when the bell rings. To be polled at once.
    pub fn source(&self) -> io::Result<&UnixDatagram> {
        self.0.get()
    }

    /// Empties the queue and returns the tokens that were in it.
    pub fn take(&self) -> Vec<String> {
        let mut tokens = Vec::new();
        let mut bytes = [0; MAX_TOKEN];
        while let Ok(len) = self.0.get().and_then(|socket| socket.recv(&mut bytes)) {
            let token = str::from_utf8(&bytes[..len]).unwrap_or_default();
            if !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
                tokens.push(token.to_owned());
            }
        }
        tokens
    }
}

/// The result of ringing a bell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RingResult {
    /// The datagram is queued.
    Queued,
    /// The queue was full. The agent will read it, and thereby see the current state, but not this token.
    QueueFull,
    /// No process has the socket open.
    NoReader,
}

/// Rings the bell of another process.
pub fn ring(dir: &PrivateDir, token: &str) -> io::Result<RingResult> {
    let socket = CheckedFd::of(UnixDatagram::unbound()?)?;
    socket.set_nonblocking(true)?;
    match with_address(dir, BELL, |address| socket.send_to(token.as_bytes(), address)) {
        Ok(_) => Ok(RingResult::Queued),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(RingResult::QueueFull),
        Err(error) if matches!(error.kind(), io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound) => {
            Ok(RingResult::NoReader)
        }
        Err(error) => Err(error),
    }
}
