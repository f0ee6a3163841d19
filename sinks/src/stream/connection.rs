//! Non-blocking connections to a peer: unsent bytes wait in memory, and received bytes are kept until a message is complete.

use crate::destination::Destination;
use fileguard::GuardedFd;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

/// Number of bytes per read.
const STEP: usize = 16 << 10;
/// Maximum number of unhandled input bytes. A valid peer never sends a message that long.
const MAX_INPUT: usize = 2 << 20;

/// Connects to one of the host's addresses at `port`, trying each until the deadline.
pub(super) fn connect(to: &Destination, port: u16, deadline: Instant) -> io::Result<GuardedFd<TcpStream>> {
    let mut failed = io::Error::new(ErrorKind::NotFound, "the host has no address");
    for address in to.addresses(port)? {
        let left = deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        match TcpStream::connect_timeout(&address, left) {
            Ok(socket) => {
                socket.set_nodelay(true)?;
                socket.set_nonblocking(true)?;
                return GuardedFd::new(socket);
            }
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

/// The control connection.
#[derive(Debug)]
pub(super) struct Control {
    pub(super) socket: GuardedFd<TcpStream>,
    output: Vec<u8>,
    /// Number of output bytes that are sent.
    sent: usize,
    input: Vec<u8>,
    /// The error with which the connection ended, if it has.
    ended: Option<io::Error>,
}

impl Control {
    pub(super) const fn new(socket: GuardedFd<TcpStream>) -> Self {
        Self { socket, output: Vec::new(), sent: 0, input: Vec::new(), ended: None }
    }

    /// Returns the descriptor, for polling at once; `None` if the program has closed it.
    pub(super) fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.socket.get().ok().map(AsFd::as_fd)
    }

    /// Returns the output buffer, for appending messages.
    pub(super) const fn output(&mut self) -> &mut Vec<u8> {
        &mut self.output
    }

    /// Returns whether bytes wait to be sent.
    pub(super) const fn is_blocked(&self) -> bool {
        self.sent < self.output.len()
    }

    /// Sends as much as possible without waiting.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        while self.is_blocked() {
            match self.socket.get()?.write(&self.output[self.sent..]) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(count) => self.sent += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.output.clear();
        self.sent = 0;
        Ok(())
    }

    /// Receives the bytes that have arrived. The end of the connection is reported by [`check`](Self::check), so that earlier messages are handled
    /// first.
    pub(super) fn receive(&mut self) -> io::Result<()> {
        if self.ended.is_some() {
            return Ok(());
        }
        let mut buffer = [0; STEP];
        while self.input.len() < MAX_INPUT {
            match self.socket.get().and_then(|mut socket| socket.read(&mut buffer)) {
                Ok(0) => {
                    let error = io::Error::new(ErrorKind::UnexpectedEof, "the peer has closed the connection");
                    self.ended = Some(error);
                    return Ok(());
                }
                Ok(count) => self.input.extend_from_slice(&buffer[..count]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    self.ended = Some(error);
                    return Ok(());
                }
            }
        }
        Err(io::Error::new(ErrorKind::InvalidData, "the peer answers without an end"))
    }

    /// Fails if the connection has ended.
    pub(super) fn check(&mut self) -> io::Result<()> {
        self.ended.take().map_or(Ok(()), Err)
    }

    /// Sends and receives, and waits until the deadline for either to become possible.
    pub(super) fn exchange(&mut self, deadline: Instant) -> io::Result<()> {
        self.flush()?;
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::Error::new(ErrorKind::TimedOut, "the peer does not answer"));
        }
        let flags = if self.is_blocked() { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
        // After EINTR or ENOMEM, check the socket as after a timeout.
        let _ = poll(&mut [PollFd::new(self.socket.get()?, flags)], Timespec::try_from(left).ok().as_ref());
        // The connection has ended and the bytes before were not enough: an error.
        self.check()?;
        self.receive()
    }

    /// Returns the received bytes that are not consumed.
    pub(super) fn input(&self) -> &[u8] {
        &self.input
    }

    /// Returns the input buffer, to be taken out during handling.
    pub(super) const fn input_mut(&mut self) -> &mut Vec<u8> {
        &mut self.input
    }

    /// Removes bytes from the front of the input.
    pub(super) fn consume(&mut self, count: usize) {
        self.input.drain(..count);
    }
}

/// Sends two consecutive parts, from byte `done` up to byte `end`, and advances `done`. Returns `false` if not everything is sent yet.
pub(super) fn write_parts(
    socket: &GuardedFd<TcpStream>,
    parts: [&[u8]; 2],
    done: &mut usize,
    end: usize,
) -> io::Result<bool> {
    let [head, rest] = parts;
    let head = &head[..head.len().min(end)];
    let rest = &rest[..rest.len().min(end - head.len())];
    while *done < head.len() + rest.len() {
        let head_left = head.get(*done..).unwrap_or_default();
        let rest_left = &rest[done.saturating_sub(head.len())..];
        match socket.get()?.write_vectored(&[IoSlice::new(head_left), IoSlice::new(rest_left)]) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(count) => *done += count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}
