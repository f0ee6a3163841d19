//! The bell: a datagram socket that wakes a process's agent.

use crate::app::BELL;
use crate::group::group;
use crate::private_dir::PrivateDir;
use rustix::fs::{AtFlags, Mode, chmodat, chownat};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::net::UnixDatagram;

/// The maximum length of a token, in bytes.
pub(crate) const MAX_TOKEN: usize = 64;

/// The socket's path through the open directory, so that it fits a socket address however long the directory's path is.
fn address(dir: &PrivateDir) -> String {
    format!("/proc/self/fd/{}/{BELL}", dir.fd().as_raw_fd())
}

/// This process's bell.
#[derive(Debug)]
pub(crate) struct Bell(UnixDatagram);

impl Bell {
    /// Creates the socket in the process's directory, which has none yet.
    pub(crate) fn make(dir: &PrivateDir) -> io::Result<Self> {
        let socket = UnixDatagram::bind(address(dir))?;
        socket.set_nonblocking(true)?;
        if let Some(group) = group() {
            // Set after the bind: other users cannot enter the directory.
            chownat(dir, BELL, None, Some(group), AtFlags::SYMLINK_NOFOLLOW)?;
            chmodat(dir, BELL, Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::WGRP, AtFlags::empty())?;
        }
        Ok(Self(socket))
    }

    /// Empties the queue and returns the tokens that were in it.
    pub(crate) fn take(&self) -> Vec<String> {
        let mut tokens = Vec::new();
        let mut bytes = [0; MAX_TOKEN];
        while let Ok(len) = self.0.recv(&mut bytes) {
            let token = str::from_utf8(&bytes[..len]).unwrap_or_default();
            if !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
                tokens.push(token.to_owned());
            }
        }
        tokens
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// The result of ringing a bell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RingResult {
    /// The datagram is queued.
    Queued,
    /// The queue was full. The agent will read it, and thereby see the current state, but not this token.
    QueueFull,
    /// No process has the socket open.
    NoReader,
}

/// Rings the bell of another process.
pub(crate) fn ring(dir: &PrivateDir, token: &str) -> io::Result<RingResult> {
    let socket = UnixDatagram::unbound()?;
    socket.set_nonblocking(true)?;
    match socket.send_to(token.as_bytes(), address(dir)) {
        Ok(_) => Ok(RingResult::Queued),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(RingResult::QueueFull),
        Err(error) if matches!(error.kind(), io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound) => {
            Ok(RingResult::NoReader)
        }
        Err(error) => Err(error),
    }
}
