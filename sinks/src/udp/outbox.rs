//! Sends datagrams to a client, many with one system call.

use fileguard::GuardedFd;
use rustix::net::{
    AddressFamily, MMsgHdr, SendAncillaryBuffer, SendFlags, SocketFlags, SocketType, bind, connect, sendmmsg,
    socket_with, sockopt,
};
use std::io::{self, IoSlice};
use std::net::{SocketAddr, UdpSocket};

/// Number of datagrams per call.
pub const DATAGRAMS_PER_CALL: usize = 64;
/// Requested size of the socket's send buffer.
const SEND_BUFFER: usize = 4 << 20;

/// A socket connected to a client, and the datagrams to send.
///
/// It is bound to the server's port. For datagrams and ICMP errors from this client, the kernel prefers it to the listening socket.
#[derive(Debug)]
pub(super) struct Outbox {
    socket: GuardedFd<UdpSocket>,
    client: SocketAddr,
    buffers: Vec<Vec<u8>>,
    filled: usize,
    sent: usize,
}

/// The result of sending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FlushResult {
    /// All are sent.
    All,
    /// The socket accepts no more at present.
    Blocked,
    /// The client's port is closed, as reported by ICMP, or the program has closed the socket. One datagram is lost, and others may wait.
    Gone,
}

impl Outbox {
    /// Opens a socket for `client`, in addition to the listening one.
    pub(super) fn open(listener: &UdpSocket, client: SocketAddr) -> io::Result<Self> {
        let family = if client.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let socket = socket_with(family, SocketType::DGRAM, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK, None)?;
        sockopt::set_socket_reuseaddr(&socket, true)?;
        // Two sockets share a port if both have SO_REUSEADDR during the bind. At other times, the port is in use.
        sockopt::set_socket_reuseaddr(listener, true)?;
        let bound = bind(&socket, &listener.local_addr()?);
        sockopt::set_socket_reuseaddr(listener, false)?;
        bound?;
        sockopt::set_socket_reuseaddr(&socket, false)?;
        connect(&socket, &client)?;
        // The kernel reduces this to the maximum that it allows.
        let _ = sockopt::set_socket_send_buffer_size(&socket, SEND_BUFFER);
        let buffers = vec![Vec::new(); DATAGRAMS_PER_CALL];
        Ok(Self { socket: GuardedFd::new(socket.into())?, client, buffers, filled: 0, sent: 0 })
    }

    /// Discards unsent datagrams and a pending error.
    pub(super) fn begin(&mut self) {
        let _ = self.socket.get().map(UdpSocket::take_error);
        self.filled = 0;
        self.sent = 0;
    }

    pub(super) const fn client(&self) -> SocketAddr {
        self.client
    }

    /// Returns the socket, for use at once; `None` if the program has closed it.
    pub(super) fn socket(&self) -> Option<&UdpSocket> {
        self.socket.get().ok()
    }

    /// Returns an empty buffer for a datagram; `None` if all are used until the next flush.
    pub(super) fn room(&mut self) -> Option<&mut Vec<u8>> {
        let buffer = self.buffers.get_mut(self.filled)?;
        buffer.clear();
        Some(buffer)
    }

    /// Queues the buffer as a datagram. Returns its size.
    pub(super) fn add(&mut self) -> usize {
        let size = self.buffers.get(self.filled).map_or(0, Vec::len);
        self.filled = self.buffers.len().min(self.filled + 1);
        size
    }

    /// Returns whether no datagram waits to be sent.
    pub(super) const fn is_empty(&self) -> bool {
        self.filled == 0
    }

    /// Sends the datagrams.
    pub(super) fn flush(&mut self) -> FlushResult {
        while self.sent < self.filled {
            let Some(socket) = self.socket() else {
                (self.filled, self.sent) = (0, 0);
                return FlushResult::Gone;
            };
            match send(socket, &self.buffers[self.sent..self.filled]) {
                Ok(count) => self.sent += count.max(1),
                Err(rustix::io::Errno::AGAIN) => return FlushResult::Blocked,
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::CONNREFUSED) => {
                    self.sent += 1;
                    return FlushResult::Gone;
                }
                // The datagram is lost, as it might be in transit: too long for the network, no route, no memory.
                Err(_) => self.sent += 1,
            }
        }
        self.filled = 0;
        self.sent = 0;
        FlushResult::All
    }
}

/// Sends datagrams with one call. Returns how many the kernel accepted.
fn send(socket: &UdpSocket, datagrams: &[Vec<u8>]) -> rustix::io::Result<usize> {
    let slices: Vec<_> = datagrams.iter().map(|datagram| [IoSlice::new(datagram)]).collect();
    let mut controls: Vec<_> = datagrams.iter().map(|_| SendAncillaryBuffer::default()).collect();
    let mut messages: Vec<_> =
        slices.iter().zip(&mut controls).map(|(slice, control)| MMsgHdr::new(slice, control)).collect();
    sendmmsg(socket, &mut messages, SendFlags::NOSIGNAL)
}
