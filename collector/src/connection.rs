//! Bytes of a connection, with limits on size and time.

use socket2::{SockRef, TcpKeepalive};
use std::cell::Cell;
use std::future::Future;
use std::io;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// How long a peer may take, from the start of the connection, until it has shown that it may use it: it has a session, or the shared key.
pub(crate) const GREETING_TIME: Duration = Duration::from_secs(10);
/// How long the rest of a message that has begun is waited for.
pub(crate) const MESSAGE_TIME: Duration = Duration::from_secs(30);
/// How long a peer may leave an answer unread.
const WRITE_TIME: Duration = Duration::from_secs(300);
/// A peer that does not answer for longer than this is gone: the time until the first probe, between two, and how many.
const KEEPALIVE: (Duration, Duration, u32) = (Duration::from_secs(30), Duration::from_secs(10), 3);
/// The room for one read.
const READ_SIZE: usize = 64 << 10;

/// A connection, and the bytes that have arrived and were not taken.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: TcpStream,
    input: Vec<u8>,
    taken: usize,
    began: Instant,
    is_established: Rc<Cell<bool>>,
}

/// What is awaited, for at most this time; without end if it is `None`.
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

    /// When it began.
    pub(crate) const fn began(&self) -> Instant {
        self.began
    }

    /// Whether the peer has shown what the connection is for: it has a session.
    pub(crate) fn is_established(&self) -> Rc<Cell<bool>> {
        Rc::clone(&self.is_established)
    }

    /// The peer has shown what the connection is for.
    pub(crate) fn establish(&self) {
        self.is_established.set(true);
    }

    /// The bytes that were not taken.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.input[self.taken..]
    }

    /// The first bytes were handled.
    pub(crate) fn take(&mut self, count: usize) {
        self.taken += count;
        if self.taken == self.input.len() {
            self.input.clear();
            self.taken = 0;
            self.input.shrink_to(READ_SIZE);
        }
    }

    /// Waits until there are `needed` bytes. `false`: the connection has ended before the first of them.
    ///
    /// # Errors
    ///
    /// `TimedOut` if the first byte does not come within `first`, or the rest within [`MESSAGE_TIME`]; `UnexpectedEof` if the connection ends
    /// between.
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

    /// The same of a peer that has not shown yet that it may use the connection.
    ///
    /// # Errors
    ///
    /// As [`fill`](Self::fill); `TimedOut` also when the connection is [`GREETING_TIME`] old, whatever has come.
    pub(crate) async fn fill_greeting(&mut self, needed: usize) -> io::Result<bool> {
        let left = GREETING_TIME.saturating_sub(self.began.elapsed());
        within(Some(left), self.fill(needed, None)).await
    }

    async fn read(&mut self) -> io::Result<usize> {
        self.input.reserve(READ_SIZE);
        self.stream.read_buf(&mut self.input).await
    }

    /// Takes `count` bytes, reading those that have not arrived into `out`, which is empty.
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
