//! Datagrams on their way to a client: many in one system call.

use rustix::net::{
    AddressFamily, MMsgHdr, SendAncillaryBuffer, SendFlags, SocketFlags, SocketType, bind, connect, sendmmsg,
    socket_with, sockopt,
};
use std::io::{self, IoSlice};
use std::net::{SocketAddr, UdpSocket};

/// How many datagrams go in one call.
pub const DATAGRAMS_PER_CALL: usize = 64;
/// How many bytes the kernel is asked to take in advance.
const SEND_BUFFER: usize = 4 << 20;

/// A socket that is connected to a client, and datagrams for it.
///
/// It has the server's own port: the kernel prefers it to the one that listens, and tells it alone what comes back from this client,
/// that nobody listens there included.
#[derive(Debug)]
pub(super) struct Outbox {
    socket: UdpSocket,
    client: SocketAddr,
    buffers: Vec<Vec<u8>>,
    filled: usize,
    sent: usize,
}

/// What became of the datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flushed {
    /// All are sent.
    All,
    /// The socket takes no more just now.
    Blocked,
    /// Somebody says that nobody listens at the client's address; a datagram is lost, and others may wait.
    Gone,
}

impl Outbox {
    /// A socket for `client`, beside the one that listens.
    pub(super) fn open(listener: &UdpSocket, client: SocketAddr) -> io::Result<Self> {
        let family = if client.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let socket = socket_with(family, SocketType::DGRAM, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK, None)?;
        sockopt::set_socket_reuseaddr(&socket, true)?;
        // Two sockets share a port if both agree at the moment of the bind. At any other time the port is taken.
        sockopt::set_socket_reuseaddr(listener, true)?;
        let bound = bind(&socket, &listener.local_addr()?);
        sockopt::set_socket_reuseaddr(listener, false)?;
        bound?;
        sockopt::set_socket_reuseaddr(&socket, false)?;
        connect(&socket, &client)?;
        // More than is allowed is cut to that.
        let _ = sockopt::set_socket_send_buffer_size(&socket, SEND_BUFFER);
        let buffers = vec![Vec::new(); DATAGRAMS_PER_CALL];
        Ok(Self { socket: socket.into(), client, buffers, filled: 0, sent: 0 })
    }

    /// Forgets what was not sent, and what became of it.
    pub(super) fn begin(&mut self) {
        let _ = self.socket.take_error();
        self.filled = 0;
        self.sent = 0;
    }

    pub(super) const fn client(&self) -> SocketAddr {
        self.client
    }

    pub(super) const fn socket(&self) -> &UdpSocket {
        &self.socket
    }

    /// Room for a datagram, empty; `None` if there is none before the next flush.
    pub(super) fn room(&mut self) -> Option<&mut Vec<u8>> {
        let buffer = self.buffers.get_mut(self.filled)?;
        buffer.clear();
        Some(buffer)
    }

    /// What was put into the room is a datagram: its size.
    pub(super) fn add(&mut self) -> usize {
        let size = self.buffers.get(self.filled).map_or(0, Vec::len);
        self.filled = self.buffers.len().min(self.filled + 1);
        size
    }

    /// Whether nothing waits to be sent.
    pub(super) const fn is_empty(&self) -> bool {
        self.filled == 0
    }

    /// Sends what there is.
    pub(super) fn flush(&mut self) -> Flushed {
        while self.sent < self.filled {
            match send(&self.socket, &self.buffers[self.sent..self.filled]) {
                Ok(count) => self.sent += count.max(1),
                Err(rustix::io::Errno::AGAIN) => return Flushed::Blocked,
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::CONNREFUSED) => {
                    self.sent += 1;
                    return Flushed::Gone;
                }
                // This datagram is lost on its way, as others are: too long for the network, no route, no memory.
                Err(_) => self.sent += 1,
            }
        }
        self.filled = 0;
        self.sent = 0;
        Flushed::All
    }
}

/// Sends datagrams by one call: how many were taken.
fn send(socket: &UdpSocket, datagrams: &[Vec<u8>]) -> rustix::io::Result<usize> {
    let slices: Vec<_> = datagrams.iter().map(|datagram| [IoSlice::new(datagram)]).collect();
    let mut controls: Vec<_> = datagrams.iter().map(|_| SendAncillaryBuffer::default()).collect();
    let mut messages: Vec<_> =
        slices.iter().zip(&mut controls).map(|(slice, control)| MMsgHdr::new(slice, control)).collect();
    sendmmsg(socket, &mut messages, SendFlags::NOSIGNAL)
}
