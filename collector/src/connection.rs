//! Buffered reads and writes on a TCP connection, with limits on size and time.

use socket2::{SockRef, TcpKeepalive};
use std::cell::Cell;
use std::future::Future;
use std::io;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Time from the start of a connection within which the peer must open a session or prove that it has the shared key.
pub(crate) const GREETING_TIME: Duration = Duration::from_secs(10);
/// Time within which the rest of a message must arrive after its first byte.
pub(crate) const MESSAGE_TIME: Duration = Duration::from_secs(30);
/// Time within which the peer must read an answer.
const WRITE_TIME: Duration = Duration::from_secs(300);
/// TCP keep-alive: time until the first probe, interval of probes, and number of unanswered probes after which the connection is closed.
const KEEPALIVE: (Duration, Duration, u32) = (Duration::from_secs(30), Duration::from_secs(10), 3);
/// Space reserved for one read, in bytes.
const READ_SIZE: usize = 64 << 10;

#[derive(Debug)]
pub(crate) struct Connection {
    stream: TcpStream,
    input: Vec<u8>,
    taken: usize,
    pub(crate) began: Instant,
    is_established: Rc<Cell<bool>>,
}

/// Awaits `what` for at most `time`, or without a limit if that is `None`. `TimedOut` after that time.
pub(crate) async fn within<T>(time: Option<Duration>, what: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    match time {
        None => what.await,
        Some(time) => timeout(time, what).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())),
    }
}

impl Connection {
    pub(crate) fn new(stream: TcpStream) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        let (idle, interval, retries) = KEEPALIVE;
        let keepalive = TcpKeepalive::new().with_time(idle).with_interval(interval).with_retries(retries);
        SockRef::from(&stream).set_tcp_keepalive(&keepalive)?;
        Ok(Self { stream, input: Vec::new(), taken: 0, began: Instant::now(), is_established: Rc::default() })
    }

    /// Returns the flag that [`establish`](Self::establish) sets.
    pub(crate) fn is_established(&self) -> Rc<Cell<bool>> {
        Rc::clone(&self.is_established)
    }

    /// Marks the connection as established: the peer has a session, or has proved that it may use the connection.
    pub(crate) fn establish(&self) {
        self.is_established.set(true);
    }

    /// Returns the bytes that were received and not yet consumed.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.input[self.taken..]
    }

    /// Consumes the first `count` bytes.
    pub(crate) fn take(&mut self, count: usize) {
        self.taken += count;
        if self.taken == self.input.len() {
            self.input.clear();
            self.taken = 0;
            self.input.shrink_to(READ_SIZE);
        }
    }

    /// Waits until `needed` bytes are buffered. Returns `false` if the connection ended before the first of them.
    ///
    /// # Errors
    ///
    /// `TimedOut` if the first byte does not arrive within `first`, or the rest not within [`MESSAGE_TIME`]. `UnexpectedEof` if the connection ends
    /// in between.
    pub(crate) async fn fill(&mut self, needed: usize, first: Option<Duration>) -> io::Result<bool> {
        self.input.drain(..self.taken);
        self.taken = 0;
        if self.input.is_empty() && within(first, self.read()).await? == 0 {
            return Ok(false);
        }
        let rest = async {
            while self.input.len() < needed {
                if self.read().await? == 0 {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
            }
            Ok(())
        };
        within(Some(MESSAGE_TIME), rest).await?;
        Ok(true)
    }

    /// Like [`fill`](Self::fill), for a peer that has not proved yet that it may use the connection.
    ///
    /// # Errors
    ///
    /// Those of [`fill`](Self::fill); also `TimedOut` when the connection is [`GREETING_TIME`] old, even if bytes have arrived.
    pub(crate) async fn fill_greeting(&mut self, needed: usize) -> io::Result<bool> {
        let left = GREETING_TIME.saturating_sub(self.began.elapsed());
        within(Some(left), self.fill(needed, None)).await
    }

    async fn read(&mut self) -> io::Result<usize> {
        self.input.reserve(READ_SIZE);
        self.stream.read_buf(&mut self.input).await
    }

    /// Consumes `count` bytes into the empty `out`; bytes that are not buffered are read from the socket directly into it.
    pub(crate) async fn read_into(&mut self, count: usize, out: &mut Vec<u8>) -> io::Result<()> {
        let here = self.bytes().len().min(count);
        out.reserve_exact(count);
        out.extend_from_slice(&self.bytes()[..here]);
        self.take(here);
        let mut rest = (&mut self.stream).take((count - here) as u64);
        let all = async {
            while rest.limit() > 0 {
                if rest.read_buf(out).await? == 0 {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
            }
            Ok(())
        };
        within(Some(MESSAGE_TIME), all).await
    }

    pub(crate) async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        within(Some(WRITE_TIME), self.stream.write_all(bytes)).await
    }
}
