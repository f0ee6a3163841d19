//! One control connection of the stream protocol: the sender's messages, and the answers to them. Has no socket.
//!
//! ```text
//!   New ──HELLO (with a shared key: CHALLENGE, AUTH)──▶ Open ──CLOSE of the session──▶ Closing ──all streams closed, account stored──▶ Ended
//!
//!   Open:     GIVE_UP closes the session; a lost connection detaches it, and it waits for its sender
//!   Closing:  GIVE_UP closes the streams as they are; a lost connection closes the session
//! ```

use crate::hub::{Hub, OpenedSession, Refusal, refused};
use crate::memory::MemoryShare;
use crate::reorder::Limits;
use crate::shares::Address;
use ipnet::IpNet;
use std::net::IpAddr;
use std::rc::Rc;
use std::time::{Duration, Instant, SystemTime};
use tokio::sync::Notify;
use tracepoint_wire::stream::{
    Ack, AnnounceReply, ClockReply, ErrorCode, FRAME_HEADER, FrameHeader, Handshake, Hello, MAX_ENTRIES, MAX_NACKS,
    Nack, Ready, SharedKey, Side, Sync, ToCollector, ToSender, VERSION, Welcome,
};

/// Interval of acknowledgements when nothing has changed.
const ACK_TIME: Duration = Duration::from_secs(1);
/// Time without a message after which a sender is considered gone.
pub(crate) const SILENCE: Duration = Duration::from_secs(10);

/// The parameters that the collector offers to a sender.
#[derive(Clone, Debug)]
pub(crate) struct Offer {
    /// The ports for packets over TCP and UDP.
    pub(crate) ports: (u16, u16),
    /// Bytes that a sender may have unacknowledged.
    pub(crate) window: u64,
    /// The name of this host.
    pub(crate) name: String,
    pub(crate) limits: Limits,
    /// The key that senders and viewers must have, and the networks from which stock ones are accepted without it.
    pub(crate) key: Option<SharedKey>,
    pub(crate) allows_stock: Vec<IpNet>,
    pub(crate) allows_stock_viewers: Vec<IpNet>,
}

impl Offer {
    /// Returns whether a stock sender at this address is accepted.
    pub(crate) fn takes_stock(&self, peer: IpAddr) -> bool {
        self.key.is_none() || contains(&self.allows_stock, peer)
    }

    /// Returns the key that a viewer at this address must have, if any.
    pub(crate) fn viewer_key(&self, peer: IpAddr) -> Option<SharedKey> {
        self.key.clone().filter(|_| !contains(&self.allows_stock_viewers, peer))
    }
}

fn contains(networks: &[IpNet], peer: IpAddr) -> bool {
    networks.iter().any(|network| network.contains(&peer.to_canonical()))
}

/// The state of a control connection.
#[derive(Debug)]
pub(crate) struct StreamControl {
    offer: Offer,
    /// The sender's location.
    address: Address,
    open: Option<OpenedSession>,
    /// The HELLO frame, and the nonce sent in reply.
    challenged: Option<(Vec<u8>, [u8; 32])>,
    /// The last synchronisation: its number, and the last packet of each stream.
    sync: Option<Sync>,
    /// The number of the last complete synchronisation.
    synced: u64,
    /// The last acknowledgement: its time, and the bytes of metadata in it.
    told: Option<(Instant, u64)>,
    /// Set while the sender has to pause.
    is_held: bool,
    told_ready: bool,
    /// The sender no longer waits for packets that are missing or cannot be written.
    gives_up: bool,
    transport: DataTransport,
    phase: Phase,
}

/// The transport of the packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DataTransport {
    Tcp,
    Udp,
    /// From a broker, where other collectors may take them instead.
    #[cfg(feature = "nats")]
    Broker,
    /// From a broker that has delivered everything: packets not received are missing.
    #[cfg(feature = "nats")]
    BrokerAtEnd,
}

impl DataTransport {
    const fn is_shared(self) -> bool {
        !matches!(self, Self::Tcp | Self::Udp)
    }
}

/// Progress of the session's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    Open,
    /// A CLOSE has listed all streams.
    Closing,
    /// The account is stored as well.
    Accounted,
    /// All messages are sent.
    Ended,
}

/// Decodes the HELLO in a frame.
fn hello_of(frame: &[u8]) -> Option<Hello<'_>> {
    let header = FrameHeader::decode(frame)?.ok()?;
    match ToCollector::decode(header.kind, frame.get(FRAME_HEADER..)?) {
        Ok(ToCollector::Hello(hello)) => Some(hello),
        _ => None,
    }
}

/// The values for which both sides prove that they have the key.
const fn handshake(hello: &Hello<'_>, nonce: [u8; 32]) -> Handshake {
    Handshake { session: hello.key, sender: hello.nonce, collector: nonce }
}

impl StreamControl {
    pub(crate) const fn new(offer: Offer, address: Address) -> Self {
        Self {
            offer,
            address,
            open: None,
            challenged: None,
            sync: None,
            synced: 0,
            told: None,
            is_held: false,
            told_ready: false,
            gives_up: false,
            transport: DataTransport::Tcp,
            phase: Phase::Open,
        }
    }

    /// For messages from a broker, which authenticates its clients itself.
    #[cfg(feature = "nats")]
    pub(crate) fn shared(offer: Offer) -> Self {
        Self { transport: DataTransport::Broker, ..Self::new(Offer { key: None, ..offer }, Address::Broker) }
    }

    pub(crate) fn session(&self) -> Option<u64> {
        self.open.map(|opened| opened.session)
    }

    #[cfg(feature = "nats")]
    pub(crate) const fn is_held(&self) -> bool {
        self.is_held
    }

    /// Records that everything sent has arrived.
    #[cfg(feature = "nats")]
    pub(crate) fn all_has_come(&mut self) {
        self.transport = DataTransport::BrokerAtEnd;
    }

    /// Returns the sender's location if a message needs resources, with the session to which it adds a stream, or `None` if it opens a session.
    pub(crate) fn needs_room(&self, hub: &Hub, message: &ToCollector<'_>) -> Option<(Address, Option<u64>)> {
        let session = match (message, self.open) {
            (ToCollector::Announce(announce), Some(opened)) if !hub.has_stream(opened.session, announce) => {
                Some(opened.session)
            }
            (ToCollector::Hello(hello), None) if self.offer.key.is_none() && hub.known(&hello.key).is_none() => None,
            // No room is made for a sender with another key.
            (ToCollector::Auth(code), None) => {
                let ((frame, nonce), key) = (self.challenged.as_ref()?, self.offer.key.as_ref()?);
                let hello = hello_of(frame)?;
                if !key.verifies(Side::Sender, &handshake(&hello, *nonce), code) || hub.known(&hello.key).is_some() {
                    return None;
                }
                None
            }
            _ => return None,
        };
        Some((self.address, session))
    }

    /// Returns whether all messages are sent, so that the connection is to be closed.
    pub(crate) fn has_ended(&self) -> bool {
        self.phase == Phase::Ended
    }

    /// Returns the notification that wakes the connection when much was stored, once there is a session.
    pub(crate) fn progress(&self, hub: &mut Hub) -> Option<Rc<Notify>> {
        hub.streamed(self.open?.session).map(|streamed| Rc::clone(&streamed.progress))
    }

    /// Handles a message and appends the answers to `out`. `memory` is charged for metadata; `random` becomes a token or a nonce.
    pub(crate) fn message(
        &mut self,
        hub: &mut Hub,
        message: ToCollector<'_>,
        memory: Option<MemoryShare>,
        random: [u8; 32],
        now: Instant,
        out: &mut Vec<u8>,
    ) -> Result<(), Refusal> {
        let Some(opened) = self.open else { return self.greet(hub, &message, random, out) };
        let id = opened.session;
        match message {
            ToCollector::Announce(announce) => {
                let (handle, next) = match hub.announce(id, &announce) {
                    Err((ErrorCode::Busy, why)) => {
                        hub.say_refused(self.address, "stream", &why);
                        ToSender::NoRoom(announce.request, &why).encode(out);
                        return Ok(());
                    }
                    announced => announced?,
                };
                // If this fails, the sender has not received the handle, and announces the stream again.
                #[cfg(feature = "nats")]
                hub.log(id, |log| log.announce(&announce)).map_err(refused(ErrorCode::Storage))?;
                ToSender::Announced(AnnounceReply { request: announce.request, handle, next }).encode(out);
            }
            ToCollector::Metadata(piece) => {
                // Before the hub has it: if this fails, the sender sends it again.
                #[cfg(feature = "nats")]
                hub.log(id, |log| log.metadata(piece.offset, piece.bytes)).map_err(refused(ErrorCode::Storage))?;
                hub.streamed_metadata(id, piece.offset, piece.bytes, memory).map_err(refused(ErrorCode::Protocol))?;
            }
            ToCollector::Sync(sync) => {
                hub.sync(id, &sync, now);
                match &mut self.sync {
                    Some(known) if known.number == sync.number => known.entries.extend(sync.entries),
                    known => *known = Some(sync),
                }
            }
            ToCollector::Gone(gone) => hub.gone(id, gone, now),
            ToCollector::ClockProbe(probe) => {
                let time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
                let time = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
                let reply = ClockReply { number: probe.number, sent: probe.sent, received: time, replied: time };
                ToSender::ClockReply(reply).encode(out);
            }
            ToCollector::Close(close) => {
                for entry in close.entries {
                    hub.end_stream(id, entry, now);
                }
                if close.whole {
                    self.phase = self.phase.max(Phase::Closing);
                }
            }
            ToCollector::Account(piece, whole) => {
                let is_whole = hub.account(id, piece.offset, piece.bytes, whole);
                if is_whole.map_err(refused(ErrorCode::Storage))? && self.phase == Phase::Closing {
                    self.phase = Phase::Accounted;
                }
            }
            // The sender gets a report of the stored packets, and then sends its account.
            ToCollector::GiveUp if matches!(self.phase, Phase::Closing | Phase::Accounted) => self.gives_up = true,
            ToCollector::GiveUp => {
                hub.close_session(id, now);
                self.phase = Phase::Ended;
            }
            _ => return Err((ErrorCode::Protocol, "the message does not fit here".to_owned())),
        }
        Ok(())
    }

    /// Handles messages before the session is open.
    fn greet(
        &mut self,
        hub: &mut Hub,
        message: &ToCollector<'_>,
        random: [u8; 32],
        out: &mut Vec<u8>,
    ) -> Result<(), Refusal> {
        let protocol = |why: &str| (ErrorCode::Protocol, why.to_owned());
        match (message, self.challenged.take(), self.offer.key.clone()) {
            (ToCollector::Hello(hello), None, _) if hello.version != u32::from(VERSION) => Err((
                ErrorCode::Version,
                format!("the sender speaks version {}, and this collector {VERSION}", hello.version),
            )),
            (ToCollector::Hello(hello), None, None) => self.open(hub, hello, [0; 32], random, out),
            (ToCollector::Hello(_), None, Some(_)) => {
                let mut frame = Vec::new();
                message.encode(&mut frame);
                self.challenged = Some((frame, random));
                ToSender::Challenge(random).encode(out);
                Ok(())
            }
            (ToCollector::Auth(code), Some((frame, nonce)), Some(key)) => {
                let hello = hello_of(&frame).ok_or_else(|| protocol("there was no HELLO"))?;
                let handshake = handshake(&hello, nonce);
                if !key.verifies(Side::Sender, &handshake, code) {
                    return Err((
                        ErrorCode::Key,
                        "the shared key of the sender is not that of the collector".to_owned(),
                    ));
                }
                self.open(hub, &hello, key.code(Side::Collector, &handshake), random, out)
            }
            (_, Some(_), _) => Err(protocol("the answer to CHALLENGE was not AUTH")),
            _ => Err(protocol("the first message was not HELLO")),
        }
    }

    /// Opens the session, or resumes it.
    fn open(
        &mut self,
        hub: &mut Hub,
        hello: &Hello<'_>,
        code: [u8; 32],
        random: [u8; 32],
        out: &mut Vec<u8>,
    ) -> Result<(), Refusal> {
        let mut token = [0; 16];
        token.copy_from_slice(&random[..16]);
        let opened = hub.open_streamed(hello, token, self.transport.is_shared(), self.address)?;
        self.open = Some(opened);
        if hello.udp && self.transport == DataTransport::Tcp {
            self.transport = DataTransport::Udp;
        }
        let welcome = Welcome {
            version: VERSION.into(),
            resumed: opened.is_resumed,
            udp: hello.udp,
            session: opened.session,
            token,
            metadata: opened.metadata,
            tcp_port: self.offer.ports.0,
            udp_port: self.offer.ports.1,
            mtu: 65_507,
            window: self.offer.window,
            code,
            name: &self.offer.name,
        };
        ToSender::Welcome(welcome).encode(out);
        Ok(())
    }

    /// Handles timeouts and appends messages for the sender. To be called often.
    pub(crate) fn tick(&mut self, hub: &mut Hub, now: Instant, out: &mut Vec<u8>) -> Result<(), Refusal> {
        let Some(opened) = self.open else { return Ok(()) };
        let id = opened.session;
        let replaced = (ErrorCode::Protocol, "another connection has gone on with the session".to_owned());
        let streamed = hub.streamed(id).filter(|streamed| streamed.connection == opened.connection).ok_or(replaced)?;
        if streamed.has_data && !self.told_ready {
            self.told_ready = true;
            ToSender::Ready(if self.transport == DataTransport::Udp { Ready::Udp } else { Ready::Tcp }).encode(out);
        }
        let limits = self.offer.limits;
        let limits = match self.transport {
            DataTransport::Udp => limits,
            #[cfg(feature = "nats")]
            DataTransport::BrokerAtEnd => limits.at_once(),
            _ => limits.over_tcp(streamed.silent, now),
        };
        for nacks in hub.gaps(id, &limits, now).chunks(MAX_NACKS) {
            ToSender::Nack(Nack { entries: nacks.to_vec() }).encode(out);
        }
        if self.gives_up && hub.pass_gaps(id) {
            self.gives_up = false;
        }
        self.acknowledge(hub, id, now, out);
        let hold = hub.hold(id, self.is_held, now);
        if self.is_held != hold.is_some() {
            self.is_held = hold.is_some();
            ToSender::Flow(hold.as_deref()).encode(out);
        }
        for closed in hub.closed(id).chunks(MAX_ENTRIES) {
            ToSender::Closed(closed.to_vec()).encode(out);
        }
        if self.phase == Phase::Accounted && hub.is_all_closed(id) {
            ToSender::Done.encode(out);
            hub.close_session(id, now);
            self.phase = Phase::Ended;
        }
        Ok(())
    }

    fn acknowledge(&mut self, hub: &mut Hub, id: u64, now: Instant, out: &mut Vec<u8>) {
        if self.sync.as_ref().is_some_and(|sync| hub.has_all(id, &sync.entries)) {
            self.synced = self.sync.take().map_or(self.synced, |sync| sync.number);
        }
        let metadata = hub.stored_metadata(id);
        let is_due = self.told.is_none_or(|(at, _)| now.saturating_duration_since(at) >= ACK_TIME);
        let (entries, lost) = hub.stored_numbers(id, is_due);
        // Together with the acknowledgement, after which the sender frees these packets.
        for range in lost {
            ToSender::Lost(range).encode(out);
        }
        if !is_due && entries.is_empty() && self.told.is_some_and(|(_, told)| told == metadata) {
            return;
        }
        self.told = Some((now, metadata));
        if let Some(streamed) = hub.streamed(id) {
            streamed.told(now);
        }
        let mut parts = entries.chunks(MAX_ENTRIES);
        loop {
            let entries = parts.next().unwrap_or_default().to_vec();
            ToSender::Ack(Ack { sync: self.synced, metadata, entries }).encode(out);
            if parts.len() == 0 {
                break;
            }
        }
    }

    pub(crate) fn ended(&self, hub: &mut Hub, now: Instant) {
        let Some(opened) = self.open else { return };
        hub.pacing.leave(opened.session);
        if self.phase >= Phase::Closing {
            hub.close_session(opened.session, now);
        } else if let Some(streamed) = hub.streamed(opened.session).filter(|it| it.connection == opened.connection) {
            streamed.detached = Some(now);
        }
    }
}

#[cfg(test)]
mod tests;
