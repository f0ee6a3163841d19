//! A client with a socket and a clock.

use super::client::{Client, Options};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

/// How much the system is asked to keep for us, in bytes. It may allow less.
const RECEIVE_BUFFER: usize = 8 << 20;
/// How many messages a server may send ahead, whatever the system keeps.
const MOST_AHEAD: u16 = 256;
/// What the system needs for a datagram besides its bytes, in the same piece of memory and beside it.
const DATAGRAM_COST: usize = 512;
/// How many datagrams are taken in one go, before the server is told and events are handed on.
const AT_ONCE: usize = 32;

/// What the system counts for a datagram of this size: pieces of memory come in powers of two.
fn cost(mtu: u16) -> usize {
    (usize::from(mtu) + DATAGRAM_COST).next_power_of_two() + DATAGRAM_COST
}

/// A session with a server.
#[derive(Debug)]
pub struct Connection {
    socket: UdpSocket,
    client: Client,
    began: Instant,
    buffer: Vec<u8>,
}

impl Connection {
    /// A session with the server at this address, from a port of ours: 0 for any. [`Options::window`] is lowered to a part of what the
    /// system keeps for us. Nothing is sent yet.
    ///
    /// # Errors
    ///
    /// What the system says to a socket with these addresses.
    pub fn open(server: SocketAddr, port: u16, mut options: Options) -> io::Result<Self> {
        let ours: IpAddr = if server.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
        let socket = UdpSocket::bind((ours, port))?;
        // What others send to our port does not reach us, and we are told when nobody listens at theirs.
        socket.connect(server)?;
        socket.set_nonblocking(true)?;
        // Whatever it allows will do.
        let _ = sockopt::set_socket_recv_buffer_size(&socket, RECEIVE_BUFFER);
        let kept = sockopt::socket_recv_buffer_size(&socket)? / cost(options.mtu);
        // Messages that are sent in one piece may count for more, and a stop shall not have much on its way.
        let kept = u16::try_from(kept / 4).unwrap_or(u16::MAX).clamp(4, MOST_AHEAD);
        options.window = if options.window == 0 { kept } else { options.window.min(kept) };
        let buffer = vec![0; 1 << 16];
        Ok(Self { socket, client: Client::new(options, Duration::ZERO), began: Instant::now(), buffer })
    }

    /// The state of the session.
    pub fn client(&mut self) -> &mut Client {
        &mut self.client
    }

    /// Sends what is to be sent, waits for something to happen, for `at_most` so long, and takes in what came.
    ///
    /// # Errors
    ///
    /// What the system says before anything came from the server, but that nobody listens, and but for datagrams that it could not
    /// take: these are sent again. Later on a datagram that fails is lost on its way, and a server that is not heard is given up.
    pub fn step(&mut self, at_most: Duration) -> io::Result<()> {
        self.client.wake(self.began.elapsed());
        self.send()?;
        let until = self.client.deadline().unwrap_or_default();
        let wait = until.saturating_sub(self.began.elapsed()).min(at_most);
        let timeout = Timespec { tv_sec: wait.as_secs().cast_signed(), tv_nsec: wait.subsec_nanos().into() };
        match poll(&mut [PollFd::new(&self.socket, PollFlags::IN)], Some(&timeout)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => return Ok(()),
            Ok(_) => {}
            Err(errno) => return Err(errno.into()),
        }
        for _ in 0..AT_ONCE {
            match self.socket.recv(&mut self.buffer) {
                Ok(length) => self.client.receive(&self.buffer[..length], self.began.elapsed()),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => self.failed(error)?,
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
