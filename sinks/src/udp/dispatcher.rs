//! Dispatches commands of clients, and runs the session with the client that is served.
//!
//! The states and transitions are those of `docs/format-udp.md`, *The server*.

mod handshake;

use super::address_validation::AddressValidator;
use super::options::UdpOptions;
use super::outbox::Outbox;
use super::queue::{PacketQueue, ServiceState};
use super::session::batch::{BatchSession, Opening};
use super::session::legacy::LegacySession;
use super::session::{Context, NextStep};
use super::split::Splitter;
use super::stats::Counters;
use fileguard::GuardedFd;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tracepoint_wire::udp::{Accept, ToServer};

/// Time that a new client has for its first acknowledgement, before its session gives way to another client.
const FIRST_ACK: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct Dispatcher {
    /// Bound to `address`.
    listener: GuardedFd<UdpSocket>,
    address: SocketAddr,
    options: UdpOptions,
    queue: Arc<PacketQueue>,
    counters: Arc<Counters>,
    uuid: [u8; 16],
    validator: AddressValidator,
    splitter: Splitter,
    session: Option<Session>,
    /// When the session begins to give way to another client, if nothing of it was acknowledged.
    yields_from: Instant,
    /// The socket of the previous session, at which later datagrams of its client arrive.
    parked: Option<Outbox>,
    seq: u32,
    read: bool,
    earlier: u64,
    over: bool,
}

#[derive(Debug)]
enum Session {
    Legacy(Box<LegacySession>),
    Batch(Box<BatchSession>),
}

impl Session {
    fn into_outbox(self) -> Outbox {
        match self {
            Self::Legacy(legacy) => legacy.outbox,
            Self::Batch(batches) => batches.outbox,
        }
    }

    const fn outbox(&self) -> &Outbox {
        match self {
            Self::Legacy(legacy) => &legacy.outbox,
            Self::Batch(batches) => &batches.outbox,
        }
    }
}

impl Dispatcher {
    pub(super) fn new(
        (listener, address): (GuardedFd<UdpSocket>, SocketAddr),
        options: UdpOptions,
        queue: Arc<PacketQueue>,
        counters: Arc<Counters>,
        uuid: [u8; 16],
        now: Instant,
    ) -> Self {
        let validator = AddressValidator::new(options.trusts_loopback, options.allowed.clone(), now);
        Self {
            listener,
            address,
            options,
            queue,
            counters,
            uuid,
            validator,
            splitter: Splitter::default(),
            session: None,
            yields_from: now,
            parked: None,
            seq: 0,
            read: false,
            earlier: 0,
            over: false,
        }
    }

    /// Returns the listening socket, for polling at once; `None` if the program has closed it.
    pub(super) fn listener(&self) -> Option<&UdpSocket> {
        self.listener.get().ok()
    }

    /// Reopens the sockets that the program has closed. A client is served again when it sends a command.
    fn reopen(&mut self, now: Instant) {
        if self.outbox().is_some_and(|outbox| outbox.socket().is_none()) {
            self.close(now);
            self.parked = None;
        }
        if !self.listener.is_open() {
            let listen = || {
                let listener = UdpSocket::bind(self.address)?;
                listener.set_nonblocking(true)?;
                GuardedFd::new(listener)
            };
            // Without a descriptor or the port, this is retried within a second.
            if let Ok(listener) = listen() {
                self.listener = listener;
            }
        }
    }

    /// Returns the socket of the session, or of the previous one.
    pub(super) fn session_socket(&self) -> Option<BorrowedFd<'_>> {
        self.outbox().and_then(Outbox::socket).map(AsFd::as_fd)
    }

    fn outbox(&self) -> Option<&Outbox> {
        self.session.as_ref().map(Session::outbox).or(self.parked.as_ref())
    }

    pub(super) const fn is_serving(&self) -> bool {
        self.session.is_some()
    }

    /// Returns whether a client was notified of the end of the trace.
    pub(super) const fn is_over(&self) -> bool {
        self.over
    }

    /// Receives at most `most` datagrams from each socket.
    pub(super) fn receive(&mut self, buffer: &mut [u8], most: usize, now: Instant) {
        self.reopen(now);
        for _ in 0..most {
            let received = self.listener.get().and_then(|listener| listener.recv_from(buffer));
            let Ok((size, from)) = received else { break };
            self.datagram(buffer.get(..size).unwrap_or_default(), from, now);
        }
        for _ in 0..most {
            let Some(socket) = self.outbox().and_then(Outbox::socket) else { break };
            // Datagrams that arrived before the socket was connected may be from any address.
            match socket.recv_from(buffer) {
                Ok((size, from)) => self.datagram(buffer.get(..size).unwrap_or_default(), from, now),
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionRefused => {
                    if let Some(Session::Batch(batches)) = &mut self.session {
                        batches.refused();
                        continue;
                    }
                    self.close(now);
                    self.parked = None;
                    break;
                }
                Err(_) => break,
            }
        }
    }

    /// Sends as much as possible without waiting.
    pub(super) fn pump(&mut self, now: Instant) -> NextStep {
        let (session, mut context) = self.parts(now);
        let next = match session {
            Some(Session::Legacy(legacy)) => legacy.pump(&mut context),
            Some(Session::Batch(batches)) => batches.pump(&mut context),
            None => return NextStep::At(None),
        };
        if let NextStep::Over { trace } = next {
            let again = match &self.session {
                Some(Session::Batch(batches)) if !trace && batches.offered_again.is_some() => {
                    Some(batches.outbox.client()).filter(|client| self.validator.is_trusted(*client))
                }
                _ => None,
            };
            self.over |= trace;
            self.close(now);
            // A client that sent START while the session was ending has not been answered yet.
            if let Some(client) = again {
                self.open_legacy(client, now);
            }
        }
        next
    }

    /// Returns packets that the session has dequeued and not sent to the queue.
    pub(super) fn requeue(&mut self, now: Instant) {
        let (session, context) = self.parts(now);
        if let Some(Session::Legacy(legacy)) = session {
            legacy.requeue(&context);
        }
        self.splitter.requeue(&self.queue);
    }

    /// Ends the server: unsent packets are lost, and the client is notified once.
    pub(super) fn end(&mut self, now: Instant) {
        self.requeue(now);
        self.queue.quit();
        let (session, mut context) = self.parts(now);
        match session {
            Some(Session::Legacy(legacy)) => legacy.send_end(&mut context),
            Some(Session::Batch(batches)) => batches.send_end(&mut context),
            None => {}
        }
        self.close(now);
    }

    /// Ends the session without a message.
    fn close(&mut self, now: Instant) {
        self.requeue(now);
        self.queue.lock().serving = ServiceState::NoClient;
        let Some(session) = self.session.take() else { return };
        self.earlier += match &session {
            Session::Legacy(legacy) => legacy.sent,
            Session::Batch(batches) => {
                self.validator.session_ended(batches.outbox.client(), batches.is_acknowledged(), now);
                self.counters.unacknowledged.add(batches.unacknowledged());
                // If the client was not notified, the next one gets the beginning of the trace.
                self.read &= batches.unanswered() != (0, true);
                batches.sent()
            }
        };
        self.parked = Some(session.into_outbox());
    }

    fn parts(&mut self, now: Instant) -> (Option<&mut Session>, Context<'_>) {
        let context = Context {
            queue: &self.queue,
            options: &self.options,
            counters: &self.counters,
            splitter: &mut self.splitter,
            seq: &mut self.seq,
            read: &mut self.read,
            now,
        };
        (self.session.as_mut(), context)
    }

    fn datagram(&mut self, bytes: &[u8], from: SocketAddr, now: Instant) {
        self.counters.received.add(1);
        let Ok(message) = ToServer::decode(bytes) else {
            self.counters.ignored.add(1);
            return;
        };
        let client = self.session.as_ref().map(|session| session.outbox().client());
        if self.over {
            self.counters.refused.add(1);
            return;
        }
        match (message, client) {
            (ToServer::Start, Some(client)) if client != from && self.yields_to(from, now) => self.start(from, now),
            (ToServer::Accept(accept), Some(client)) if client != from && self.yields_to(from, now) => {
                self.accept(accept, from, now);
            }
            (_, Some(client)) if client != from => self.counters.ignored.add(1),
            (ToServer::Start, Some(_)) => self.start_again(from, now),
            (ToServer::Start, None) => self.start(from, now),
            (ToServer::Accept(accept), Some(_)) => self.accept_again(accept, from, now),
            (ToServer::Accept(accept), None) => self.accept(accept, from, now),
            (message, _) => self.session_message(message, now),
        }
    }

    /// Returns whether the session gives way to a client at this address, because its own client has acknowledged nothing in time. Otherwise, hosts
    /// that prove their addresses and then only repeat ACCEPT would keep all clients out.
    fn yields_to(&self, from: SocketAddr, now: Instant) -> bool {
        now >= self.yields_from
            && matches!(&self.session, Some(Session::Batch(batches)) if !batches.is_acknowledged())
            && (self.validator.is_trusted(from) || !self.validator.is_silent(from, now))
    }

    /// Handles STOP, ACK or LEAVE of the current client.
    fn session_message(&mut self, message: ToServer, now: Instant) {
        let (session, mut context) = self.parts(now);
        match (message, session) {
            (ToServer::Stop, Some(Session::Legacy(legacy))) => legacy.stop(&mut context),
            (ToServer::Ack(ack), Some(Session::Batch(batches))) if ack.session == batches.id() => {
                batches.acknowledge(ack, &context);
            }
            (ToServer::Leave(number), Some(Session::Batch(batches))) if number == batches.id() => {
                batches.leave(now);
            }
            _ => self.counters.ignored.add(1),
        }
    }

    /// Returns a socket for this client; `None` if the system cannot create one.
    fn open(&mut self, client: SocketAddr) -> Option<Outbox> {
        // Another client's socket is closed here, which frees the port for one more.
        if let Some(mut parked) = self.parked.take().filter(|parked| parked.client() == client) {
            parked.begin();
            return Some(parked);
        }
        Outbox::open(self.listener.get().ok()?, client).ok()
    }

    fn open_legacy(&mut self, from: SocketAddr, now: Instant) {
        self.close(now);
        let Some(outbox) = self.open(from) else { return };
        let nonce = self.offers().then(|| (self.validator.draw() & 0xffff) as u16);
        let most = if AddressValidator::is_local(from) { self.options.legacy_rate } else { self.options.allowed_rate };
        let rate = Some(self.options.rate.map_or(most, |rate| rate.min(most)));
        self.counters.session();
        let (_, mut context) = self.parts(now);
        let legacy = LegacySession::begin(outbox, nonce, rate, &mut context);
        self.serving(legacy.is_limited());
        self.session = Some(Session::Legacy(Box::new(legacy)));
    }

    /// `first`: this client was notified in the legacy layout that the trace begins.
    fn open_batches(&mut self, outbox: Outbox, accept: Accept, legacy: u64, first: bool, now: Instant) {
        let session = self.validator.draw();
        let first = !std::mem::replace(&mut self.read, true) || first;
        let opening = Opening { accept, session, uuid: self.uuid, first, earlier: self.earlier, legacy_events: legacy };
        let known = self.validator.is_silent(outbox.client(), now);
        self.yields_from = if known { now } else { now + FIRST_ACK };
        let (_, context) = self.parts(now);
        let batches = BatchSession::begin(outbox, &opening, &context);
        self.serving(batches.is_limited());
        self.session = Some(Session::Batch(Box::new(batches)));
    }

    /// Records that a client is served, and whether its rate is limited.
    fn serving(&self, is_limited: bool) {
        self.queue.lock().serving = if is_limited { ServiceState::Limited } else { ServiceState::Unlimited };
    }

    /// Returns whether this trace can be sent in batches.
    fn offers(&self) -> bool {
        self.options.batch && self.queue.lock().layout.as_ref().is_some_and(|layout| layout.sizes.is_some())
    }

    /// Sends a datagram outside of a session. It may be lost.
    fn answer(&self, datagram: &[u8], to: SocketAddr) {
        let _ = self.listener.get().and_then(|listener| listener.send_to(datagram, to));
    }

    /// Takes the number of a message outside of a session.
    fn number(&mut self, bytes: usize) -> u32 {
        self.counters.sent(bytes);
        let seq = self.seq;
        self.seq = seq.wrapping_add(1);
        seq
    }
}
