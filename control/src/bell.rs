//! The bell: a datagram socket by which somebody says that there is something to look at.

use crate::app::BELL;
use crate::group::group;
use crate::private_dir::PrivateDir;
use rustix::fs::{AtFlags, Mode, chmodat, chownat};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::net::UnixDatagram;

/// The longest token.
pub(crate) const MAX_TOKEN: usize = 64;

/// The path of a file in an open directory: as short as addresses of sockets have to be, wherever the directory is.
fn address(dir: &PrivateDir) -> String {
    format!("/proc/self/fd/{}/{BELL}", dir.fd().as_raw_fd())
}

/// This process's bell.
#[derive(Debug)]
pub(crate) struct Bell(UnixDatagram);

impl Bell {
    /// Makes it in the process's directory, where none is yet.
    pub(crate) fn make(dir: &PrivateDir) -> io::Result<Self> {
        let socket = UnixDatagram::bind(address(dir))?;
        socket.set_nonblocking(true)?;
        if let Some(group) = group() {
            // In a directory that others cannot enter.
            chownat(dir, BELL, None, Some(group), AtFlags::SYMLINK_NOFOLLOW)?;
            chmodat(dir, BELL, Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::WGRP, AtFlags::empty())?;
        }
        Ok(Self(socket))
    }

    /// Takes all that was said: the tokens.
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

/// What became of ringing a bell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rung {
    /// It will be read.
    Heard,
    /// The queue was full: what is in it will be read, and later than what this is about was done; the token will not.
    Full,
    /// Nobody holds it any more.
    Nobody,
}

/// Rings the bell of another process.
pub(crate) fn ring(dir: &PrivateDir, token: &str) -> io::Result<Rung> {
    let socket = UnixDatagram::unbound()?;
    socket.set_nonblocking(true)?;
    match socket.send_to(token.as_bytes(), address(dir)) {
        Ok(_) => Ok(Rung::Heard),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(Rung::Full),
        Err(error) if matches!(error.kind(), io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound) => {
            Ok(Rung::Nobody)
        }
        Err(error) => Err(error),
    }
}
