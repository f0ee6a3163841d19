//! The client's side of a session: datagrams and times go in, outgoing datagrams and [`Report`]s come out.
//!
//! ```text
//!   Handshake ──▶ Legacy ──▶ over        SESSION_BEGIN without an offer, or with an unwanted offer
//!       │           │
//!       └───────────┴─────▶ Batch ──▶ over
//!                              WELCOME
//! ```
//!
//! The client has no socket and no clock: the caller passes the time, counted from any moment, and calls [`Client::wake`] at
//! [`Client::deadline`]. Every wait is bounded, so a session ends regardless of which messages are lost.

mod batch;
mod handshake;
mod legacy;
mod legacy_order;
mod retry;
mod second_socket;
mod session_core;
mod text_assembly;
mod totals;

use super::report::{Counts, Report, SessionEnd};
use batch::BatchSession;
use handshake::Handshake;
use legacy::LegacySession;
use legacy_order::LegacyOrder;
use second_socket::SecondSocket;
use session_core::SessionCore;
use std::num::NonZeroU64;
use std::time::Duration;
use tracepoint_wire::udp::client::DEFAULT_MTU;
use tracepoint_wire::udp::{DecodeError, FromServer, Welcome};

/// The number of consecutive `connection refused` errors after which the server is considered gone.
const REFUSALS: u32 = 3;

/// The options of a client.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// True to stay in the legacy layout even if the server offers the batch layout.
    pub legacy: bool,
    /// The number of events after which the server is asked to stop. In the batch layout the server sends no more than these; in the legacy
    /// layout, which cannot express a limit, events already under way are delivered as well.
    pub events_limit: Option<NonZeroU64>,
    /// The longest datagram with several events, in bytes: 512 to 65507.
    pub mtu: u16,
    /// Maximum number of unacknowledged messages of a server; 0: no limit.
    pub window: u16,
    /// How long a message waits for a missing one before it.
    pub gap_timeout: Duration,
    /// Maximum number of messages that wait for an earlier one.
    pub max_held: usize,
    /// The silence after which a session in the legacy layout times out. In this layout an idle server sends nothing.
    pub idle: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            legacy: false,
            events_limit: None,
            mtu: DEFAULT_MTU,
            window: 64,
            gap_timeout: Duration::from_millis(200),
            max_held: 4096,
            idle: Duration::from_secs(60),
        }
    }
}

/// The client of one session, from START to its end.
#[derive(Debug)]
pub struct Client {
    core: SessionCore,
    phase: Phase,
    second_socket: SecondSocket,
    refusals: u32,
    ending: Option<SessionEnd>,
}

#[derive(Debug)]
enum Phase {
    Handshake(Handshake),
    Legacy(LegacySession),
    Batch(BatchSession),
    Over,
}

/// The successor of a phase.
#[derive(Debug)]
enum Transition {
    Legacy(LegacyOrder),
    Batch { session: u32, seq: u32, welcome: Welcome },
    Over(SessionEnd),
}

impl Client {
    /// A client whose session begins at `now`. Nothing is sent before the first [`Client::wake`].
    pub fn new(options: Options, now: Duration) -> Self {
        let phase = Phase::Handshake(Handshake::new(now));
        Self {
            core: SessionCore::new(options),
            phase,
            second_socket: SecondSocket::default(),
            refusals: 0,
            ending: None,
        }
    }

    /// Processes a datagram from the server's port.
    pub fn receive(&mut self, datagram: &[u8], now: Duration) {
        let counts = &mut self.core.counts;
        counts.datagrams += 1;
        counts.bytes += datagram.len() as u64;
        self.refusals = 0;
        match FromServer::decode(datagram) {
            Ok(message) => {
                if let (true, Phase::Handshake(beginning)) = (self.second_socket.is_used(), &mut self.phase) {
                    beginning.forget();
                }
                self.second_socket.close();
                let next = match &mut self.phase {
                    Phase::Handshake(beginning) => beginning.receive(&mut self.core, &message, now),
                    Phase::Legacy(legacy) => legacy.receive(&mut self.core, &message, now),
                    Phase::Batch(batch) => batch.receive(&mut self.core, &message, now),
                    Phase::Over => None,
                };
                self.follow(next, now);
            }
            Err(DecodeError::Checksum) => counts.corrupted += 1,
            Err(_) => counts.malformed += 1,
        }
    }

    /// Processes a datagram from another `port` of the server's address. The original server sends from a second socket. Its messages are
    /// accepted if the server's own port has sent none; others are counted as foreign.
    pub fn receive_aside(&mut self, port: u16, datagram: &[u8], now: Duration) {
        let message = FromServer::decode(datagram).ok().filter(|message| self.second_socket.takes(port, message));
        let Some(message) = message else {
            self.core.counts.foreign += 1;
            return;
        };
        self.core.counts.datagrams += 1;
        self.core.counts.bytes += datagram.len() as u64;
        let next = match &mut self.phase {
            Phase::Handshake(beginning) => {
                beginning.receive_aside(&mut self.core, &message, now);
                None
            }
            Phase::Legacy(legacy) => legacy.receive(&mut self.core, &message, now),
            Phase::Batch(_) | Phase::Over => None,
        };
        self.follow(next, now);
    }

    /// Processes a `connection refused` error of the socket.
    pub fn refused(&mut self, now: Duration) {
        self.refusals += 1;
        if self.refusals >= REFUSALS {
            let next = match &mut self.phase {
                Phase::Handshake(beginning) => beginning.give_up(),
                Phase::Legacy(legacy) => Transition::Over(legacy.give_up(&mut self.core, SessionEnd::Gone)),
                Phase::Batch(batch) => Transition::Over(batch.give_up(&mut self.core, SessionEnd::Gone)),
                Phase::Over => return,
            };
            self.follow(Some(next), now);
        }
    }

    /// Sends the messages and makes the reports that are due at `now`.
    pub fn wake(&mut self, now: Duration) {
        let next = match &mut self.phase {
            Phase::Handshake(beginning) => beginning.wake(&mut self.core, now),
            Phase::Legacy(legacy) => legacy.wake(&mut self.core, now),
            Phase::Batch(batch) => batch.wake(&mut self.core, now),
            Phase::Over => None,
        };
        self.follow(next, now);
    }

    fn follow(&mut self, next: Option<Transition>, now: Duration) {
        match next {
            None => {}
            Some(Transition::Legacy(order)) => self.phase = Phase::Legacy(LegacySession::new(order, now)),
            Some(Transition::Batch { session, seq, welcome }) => {
                let batch = BatchSession::new(&mut self.core, session, seq, welcome, now);
                self.phase = Phase::Batch(batch);
            }
            Some(Transition::Over(ending)) => {
                self.phase = Phase::Over;
                self.ending = Some(ending);
            }
        }
    }

    /// When to call [`Client::wake`], unless a datagram arrives earlier; `None` when the session is over.
    pub fn deadline(&self) -> Option<Duration> {
        match &self.phase {
            Phase::Handshake(beginning) => Some(beginning.deadline()),
            Phase::Legacy(legacy) => Some(legacy.deadline(&self.core)),
            Phase::Batch(batch) => Some(batch.deadline(&self.core)),
            Phase::Over => None,
        }
    }

    /// Asks the server to stop. Events that are under way are still delivered.
    pub fn stop(&mut self) {
        self.core.stop_wanted = true;
    }

    /// The next datagram to send.
    pub fn outgoing(&mut self) -> Option<Vec<u8>> {
        self.core.out.pop_front()
    }

    /// The next report.
    pub fn report(&mut self) -> Option<Report> {
        self.core.reports.pop_front()
    }

    /// The counts so far.
    pub fn counts(&self) -> Counts {
        self.core.counts
    }

    /// The way the session ended; `None` until then.
    pub fn ending(&self) -> Option<SessionEnd> {
        self.ending
    }
}
