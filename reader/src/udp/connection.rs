//! A client with its sockets and a clock.

use super::client::{Client, Options};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, connect, socket_with, sockopt};
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

/// The requested receive buffer, in bytes. The system may grant less.
const RECEIVE_BUFFER: usize = 8 << 20;
/// Maximum window, regardless of the receive buffer.
const MAX_WINDOW: u16 = 256;
/// The system's overhead for a datagram, within the same allocation and outside it, in bytes.
const DATAGRAM_COST: usize = 512;
/// Maximum number of datagrams received before acknowledgements are sent and events are passed on.
const RECEIVE_BATCH: usize = 32;

/// The amount charged to the receive buffer for a datagram of this size: allocations are powers of two.
fn cost(mtu: u16) -> usize {
    (usize::from(mtu) + DATAGRAM_COST).next_power_of_two() + DATAGRAM_COST
}

/// A socket with the same port as this one that is connected to the server.
fn connect_beside(other: &UdpSocket, server: SocketAddr) -> io::Result<UdpSocket> {
    let family = if server.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = socket_with(family, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    // Two sockets share a port if both have SO_REUSEADDR during the bind. At other times the port is taken.
    sockopt::set_socket_reuseaddr(other, true)?;
    let bound = bind(&socket, &other.local_addr()?);
    sockopt::set_socket_reuseaddr(other, false)?;
    bound?;
    sockopt::set_socket_reuseaddr(&socket, false)?;
    connect(&socket, &server)?;
    Ok(socket.into())
}

/// A client with its sockets and clock.
#[derive(Debug)]
pub struct Connection {
    /// Connected to the server's port: it receives datagrams only from there, and `connection refused`.
    socket: UdpSocket,
    /// On the same local port, not connected: it receives datagrams from the second socket of the original server.
    other_ports: UdpSocket,
    server: SocketAddr,
    client: Client,
    began: Instant,
    buffer: Vec<u8>,
}

impl Connection {
    /// Opens a socket on the local `port` (0 for any) to the server at this address. [`Options::window`] is reduced to a part of the
    /// receive buffer. Nothing is sent yet.
    ///
    /// # Errors
    ///
    /// The system's error if there can be no socket with these addresses.
    pub fn open(server: SocketAddr, port: u16, mut options: Options) -> io::Result<Self> {
        let local: IpAddr = if server.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
        let other_ports = UdpSocket::bind((local, port))?;
        let socket = connect_beside(&other_ports, server)?;
        for socket in [&socket, &other_ports] {
            socket.set_nonblocking(true)?;
            // A smaller buffer only lowers the window.
            let _ = sockopt::set_socket_recv_buffer_size(socket, RECEIVE_BUFFER);
        }
        let kept = sockopt::socket_recv_buffer_size(&socket)? / cost(options.mtu);
        // Messages in one segment may be charged more, and only few events should be under way at a stop.
        let kept = u16::try_from(kept / 4).unwrap_or(u16::MAX).clamp(4, MAX_WINDOW);
        options.window = if options.window == 0 { kept } else { options.window.min(kept) };
        let (client, began, buffer) = (Client::new(options, Duration::ZERO), Instant::now(), vec![0; 1 << 16]);
        Ok(Self { socket, other_ports, server, client, began, buffer })
    }

    /// The state of the session.
    pub fn client(&mut self) -> &mut Client {
        &mut self.client
    }

    /// Sends the messages that are due, waits at most `at_most` for a datagram or the next deadline, and receives.
    ///
    /// # Errors
    ///
    /// System errors before the first datagram from the server. `connection refused` and full buffers are not errors: the
    /// datagram is sent again. After the first datagram, an error counts as a loss, and the session ends by its timeouts.
    pub fn step(&mut self, at_most: Duration) -> io::Result<()> {
        self.client.wake(self.began.elapsed());
        self.send()?;
        let until = self.client.deadline().unwrap_or_default();
        let wait = until.saturating_sub(self.began.elapsed()).min(at_most);
        let timeout = Timespec { tv_sec: wait.as_secs().cast_signed(), tv_nsec: wait.subsec_nanos().into() };
        let mut sources = [&self.socket, &self.other_ports].map(|socket| PollFd::new(socket, PollFlags::IN));
        match poll(&mut sources, Some(&timeout)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => return Ok(()),
            Ok(_) => {}
            Err(errno) => return Err(errno.into()),
        }
        for _ in 0..RECEIVE_BATCH {
            match self.socket.recv(&mut self.buffer) {
                Ok(length) => self.client.receive(&self.buffer[..length], self.began.elapsed()),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => self.failed(error)?,
            }
        }
        for _ in 0..RECEIVE_BATCH {
            let Ok((length, from)) = self.other_ports.recv_from(&mut self.buffer) else { break };
            if from.ip() == self.server.ip() {
                self.client.receive_aside(from.port(), &self.buffer[..length], self.began.elapsed());
            }
        }
        Ok(())
    }

    fn send(&mut self) -> io::Result<()> {
        while let Some(datagram) = self.client.outgoing() {
            if let Err(error) = self.socket.send(&datagram) {
                self.failed(error)?;
            }
        }
        Ok(())
    }

    fn failed(&mut self, error: io::Error) -> io::Result<()> {
        match error.kind() {
            ErrorKind::ConnectionRefused => self.client.refused(self.began.elapsed()),
            ErrorKind::WouldBlock | ErrorKind::Interrupted | ErrorKind::OutOfMemory => {}
            _ if error.raw_os_error() == Some(rustix::io::Errno::NOBUFS.raw_os_error()) => {}
            _ if self.client.counts().datagrams > 0 => {}
            _ => return Err(error),
        }
        Ok(())
    }
}
