//! Serves metrics over HTTP. One thread handles many connections at once, so that a slow peer delays no other.

mod connection;

use crate::failure::{Failure, Outcome, VerbResult};
use crate::interrupt::WaitingInterrupt;
use crate::message;
use connection::{Connection, Step};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::time::{Duration, Instant};
use tracepoint_collector::prometheus::Metrics;

/// Maximum number of concurrent connections. To accept another one, the server closes the oldest one without a complete request.
const MAX: usize = 64;
/// Pause before the next attempt after a failed accept.
const PAUSE: Duration = Duration::from_millis(100);

/// Answers requests with `metrics` until Ctrl-C. If `metrics` fails, the answer is an error, and the next request tries again.
pub(super) fn serve(address: SocketAddr, metrics: impl Fn() -> Result<Metrics, Failure>) -> VerbResult {
    let interrupt = WaitingInterrupt::without_children()?;
    let failed = |error: io::Error| Failure::Refused(format!("cannot listen on {address}: {error}"));
    let listener = TcpListener::bind(address).map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    message::note(&format!("serving on http://{}/metrics", listener.local_addr().map_err(failed)?));
    let mut server = Server { listener, connections: Vec::new(), paused_until: None };
    while !interrupt.is_requested() {
        server.wait(&interrupt);
        server.accept();
        server.go_on(&metrics);
    }
    Ok(Outcome::Success)
}

struct Server {
    listener: TcpListener,
    /// Ordered, the oldest first.
    connections: Vec<Connection>,
    paused_until: Option<Instant>,
}

impl Server {
    /// Waits for a connection, for data or for a signal.
    fn wait(&self, interrupt: &WaitingInterrupt) {
        let mut events = vec![PollFd::from_borrowed_fd(interrupt.signals(), PollFlags::IN)];
        if self.paused_until.is_none() && self.has_room() {
            events.push(PollFd::new(&self.listener, PollFlags::IN));
        }
        events.extend(self.connections.iter().map(Connection::interest));
        let until = self.connections.iter().map(|connection| connection.until).chain(self.paused_until).min();
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        let timeout = left.and_then(|left| Timespec::try_from(left).ok());
        // A signal also ends the wait.
        let _ = poll(&mut events, timeout.as_ref());
    }

    /// True if there is a free place, or a connection without a request that can be closed.
    fn has_room(&self) -> bool {
        self.connections.len() < MAX || self.connections.iter().any(Connection::is_asking)
    }

    /// Accepts at most one pending connection: the requests of all others have been read before one of them is closed.
    fn accept(&mut self) {
        if self.paused_until.is_some_and(|until| Instant::now() < until) || !self.has_room() {
            return;
        }
        self.paused_until = None;
        match self.listener.accept().and_then(|(stream, peer)| Connection::new(stream, peer)) {
            Ok(connection) => self.connections.push(connection),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            // The peer has already closed, or no descriptors are available.
            Err(error) => {
                message::note(&format!("a request is not answered: {error}"));
                self.paused_until = Some(Instant::now() + PAUSE);
            }
        }
        if self.connections.len() > MAX
            && let Some(oldest) = self.connections.iter().position(Connection::is_asking)
        {
            let peer = self.connections.remove(oldest).peer;
            message::note(&format!("{peer} was not answered: no complete request came before {MAX} further ones"));
        }
    }

    /// Advances each connection, and closes those that time out.
    fn go_on(&mut self, metrics: impl Fn() -> Result<Metrics, Failure>) {
        self.connections.retain_mut(|connection| match go_on(connection, &metrics) {
            Ok(goes_on) => goes_on,
            Err(why) => {
                message::note(&format!("{} was not answered: {why}", connection.peer));
                false
            }
        });
    }
}

/// Advances a connection. Returns true if it stays open.
fn go_on(connection: &mut Connection, metrics: impl Fn() -> Result<Metrics, Failure>) -> Result<bool, String> {
    loop {
        match connection.step().map_err(|error| error.to_string())? {
            Step::End => return Ok(false),
            Step::Wait => return connection.late(Instant::now()).map_or(Ok(true), |why| Err(why.to_owned())),
            Step::Answer(request) => {
                let answer = request.refusal().unwrap_or_else(|| match metrics() {
                    Ok(metrics) => request.reply(metrics),
                    Err(error) => {
                        message::note(&format!("{} gets no metrics: {error}", connection.peer));
                        request.failure(&error.to_string())
                    }
                });
                connection.answer(answer);
            }
        }
    }
}
