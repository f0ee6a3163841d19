//! A connection to a relay: sends requests and reads their replies.

use super::options::LiveOptions;
use super::{LiveError, LiveUrl};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tracepoint_wire::live::{Connect, MAJOR, Request, Secret, SessionRecord, Sessions};
use tracepoint_wire::stream::{Handshake, SharedKey, Side};
use tracepoint_wire::{DecodeError, Decoded};

/// Timeout for connecting to one address.
const CONNECT: Duration = Duration::from_secs(5);
/// Interval at which a blocked read checks for a stop request.
const STEP: Duration = Duration::from_millis(100);
/// Number of bytes read at once, and the most that is allocated before they arrive.
const PIECE: usize = 256 << 10;

/// A connection. `S` is a socket with a short read timeout.
#[derive(Debug)]
pub(super) struct Relay<S> {
    socket: S,
    buffer: Vec<u8>,
    /// Maximum silence of the relay before the connection fails.
    silence: Duration,
    stop: Arc<AtomicBool>,
    /// True if the relay is this project's collector, which reports clock alignments.
    pub(super) is_collector: bool,
}

impl Relay<TcpStream> {
    /// Connects to a relay.
    pub(super) fn open(url: &LiveUrl, options: &LiveOptions) -> Result<Self, LiveError> {
        let silence = options.silence;
        let (host, port) = (url.host.as_str(), url.port);
        let failed = |source| LiveError::Connect { address: format!("{host} port {port}"), source };
        let wanted = |address: &SocketAddr| url.v6.is_none_or(|v6| address.is_ipv6() == v6);
        let mut result = Err(io::Error::new(io::ErrorKind::NotFound, "the host has no address of this kind"));
        for address in (host, port).to_socket_addrs().map_err(failed)?.filter(wanted) {
            result = TcpStream::connect_timeout(&address, CONNECT);
            if result.is_ok() {
                break;
            }
        }
        let socket = result.map_err(failed)?;
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(STEP))?;
        socket.set_write_timeout(Some(silence))?;
        Self::begin(socket, options)
    }
}

impl<S: Read + Write> Relay<S> {
    /// Performs the handshake over `socket`.
    pub(super) fn begin(socket: S, options: &LiveOptions) -> Result<Self, LiveError> {
        let (buffer, silence, stop) = (Vec::new(), options.silence, Arc::clone(&options.stop));
        let mut relay = Self { socket, buffer, silence, stop, is_collector: false };
        let connect = relay.ask(Request::Connect(Connect::viewer()), |bytes| Ok(Connect::decode(bytes)))?;
        let Connect { major, minor, .. } = connect;
        if major != MAJOR {
            return Err(LiveError::Version { major, minor });
        }
        relay.is_collector = connect.is_collector();
        match &options.key {
            Some(key) if connect.asks_for_key() => relay.prove(key)?,
            Some(_) => return Err(LiveError::Key("it does not ask for the shared key; leave `--key-file` out")),
            None if connect.asks_for_key() => {
                return Err(LiveError::Key(
                    "it asks for a shared key: copy the file that `tracectl collect` names, and give it (`--key-file FILE`)",
                ));
            }
            None => {}
        }
        Ok(relay)
    }

    /// Authenticates both sides with the shared key.
    fn prove(&mut self, key: &SharedKey) -> Result<(), LiveError> {
        let Secret(collector) = self.ask(Request::Challenge, Secret::decode)?;
        let mut nonce = [0; 32];
        random(&mut nonce)?;
        let handshake = Handshake { session: [0; 16], sender: nonce, collector };
        let code = key.code(Side::Viewer, &handshake);
        let Secret(code) = self.ask(Request::Prove { nonce, code }, Secret::decode)?;
        let is_same = key.verifies(Side::Viewed, &handshake, &code);
        if is_same { Ok(()) } else { Err(LiveError::Key("its shared key is another one")) }
    }

    /// Sends a request, and waits for its reply.
    pub(super) fn ask<T>(
        &mut self,
        request: Request,
        decode: impl Fn(&[u8]) -> Result<Decoded<T>, DecodeError>,
    ) -> Result<T, LiveError> {
        self.tell(request)?;
        self.buffer.clear();
        loop {
            match decode(&self.buffer)? {
                Decoded::Whole(reply, _) => return Ok(reply),
                Decoded::Needs(size) => self.read(size)?,
            }
        }
    }

    /// Sends a request without waiting for its reply.
    pub(super) fn tell(&mut self, request: Request) -> Result<(), LiveError> {
        let mut bytes = Vec::new();
        request.encode(&mut bytes);
        Ok(self.socket.write_all(&bytes)?)
    }

    /// Lists the sessions of the relay.
    pub(super) fn sessions(&mut self) -> Result<Vec<SessionRecord>, LiveError> {
        Ok(self.ask(Request::ListSessions, Sessions::decode)?.0)
    }

    /// Reads until the buffer has `size` bytes, and not beyond: further bytes would belong to no request.
    fn read(&mut self, size: usize) -> Result<(), LiveError> {
        let mut heard = Instant::now();
        while self.buffer.len() < size {
            let begin = self.buffer.len();
            self.buffer.resize(size.min(begin + PIECE), 0);
            let read = self.socket.read(&mut self.buffer[begin..]);
            self.buffer.truncate(begin + read.as_ref().copied().unwrap_or(0));
            match read {
                Ok(0) => return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the relay has closed it").into()),
                Ok(_) => heard = Instant::now(),
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted => {}
                    _ => return Err(error.into()),
                },
            }
            self.check(heard)?;
        }
        Ok(())
    }

    /// Fails if a stop was requested, or if the relay has been silent for too long since `heard`.
    pub(super) fn check(&self, heard: Instant) -> Result<(), LiveError> {
        if self.stop.load(Ordering::Relaxed) {
            Err(LiveError::Stopped)
        } else if heard.elapsed() >= self.silence {
            Err(LiveError::Silent(self.silence))
        } else {
            Ok(())
        }
    }
}

/// Lists the sessions of a relay. Several entries may have the same host and name; [`LiveView`](super::LiveView) attaches all of them as one.
///
/// # Errors
///
/// [`LiveError`] if the relay cannot be reached, or its answer is invalid.
pub fn list_sessions(url: &LiveUrl, options: &LiveOptions) -> Result<Vec<SessionRecord>, LiveError> {
    Relay::open(url, options)?.sessions()
}

/// Fills the bytes with random ones of the system.
#[cfg(target_os = "linux")]
fn random(bytes: &mut [u8]) -> io::Result<()> {
    use rustix::rand::{GetRandomFlags, getrandom};
    getrandom(bytes, GetRandomFlags::empty())?;
    Ok(())
}

/// Fills the bytes with random ones: they must not repeat, and the keys of the standard library's hash function, which come from the system, do not.
#[cfg(not(target_os = "linux"))]
#[expect(clippy::unnecessary_wraps, reason = "the counterpart may fail")]
fn random(bytes: &mut [u8]) -> io::Result<()> {
    use std::hash::{BuildHasher, RandomState};
    for chunk in bytes.chunks_mut(8) {
        chunk.copy_from_slice(&RandomState::new().hash_one(0).to_le_bytes()[..chunk.len()]);
    }
    Ok(())
}
