//! A session with a NATS broker: packets are published to a stream of `JetStream`, and kept until the broker has stored them.
//!
//! ```text
//!   open: HELLO                              each of these is stored before the next message is published
//!     │
//!     ▼
//!   publishing ── packet: METADATA if there is more; ANNOUNCE before a stream's first one; the packet, while the window has room
//!     │       └── synchronisation point: SYNC
//!     │       ◀── stored: releases published messages, in order
//!     ▼ the recording has ended, all packets are stored
//!   closing: CLOSE, ACCOUNT ─▶ stored ─▶ over
//! ```
//!
//! [`Published`] and [`Kept`] outlive the connection and record the stored part of the trace; everything else is published again, under the same ids.
//! The subjects and messages are described in `docs/nats.md`. [`link`] is the connection.

mod entries;
mod link;
mod published;

use super::collector::{Kept, SentPacket};
use super::options::StreamOptions;
use super::promise;
use super::queue::{Item, Queue, QueuedPacket};
use super::session::{ConnectionError, Identity, NextStep};
use super::streams::Streams;
use super::throttle::{FrameLayout, Throttle, Ticket};
use crate::stream_stats::LostPackets;
use link::Link;
pub(super) use published::Published;
use published::Step;
use rustix::event::{PollFd, PollFlags};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;
use tracepoint_wire::nats::{Broker, OVERHEAD, Publication, Publish};
use tracepoint_wire::stream::{NO_SEQ, Piece, Route};

/// Maximum number of messages published and not yet stored.
const MAX_IN_FLIGHT: usize = 1024;
/// Number of steps before messages are read again.
const BATCH: usize = 64;

/// A session.
#[derive(Debug)]
pub(super) struct Nats {
    link: Link,
    name: String,
    identity: Identity,
    publication: Publication,
    throttle: Throttle,
    /// Maximum number of bytes in packets published and not yet stored.
    window: u64,
    /// Messages published and not yet stored, in order.
    in_flight: VecDeque<InFlight>,
    /// Unconfirmed packets of an earlier connection, by stream and number.
    again: VecDeque<(usize, u64)>,
    sending: Option<OutgoingPacket>,
    /// The remaining messages of the end, once that has begun.
    closing: Option<VecDeque<Publish>>,
    has_stored: bool,
}

#[derive(Debug)]
enum InFlight {
    /// A message that must be stored before the next one is published.
    Step(Step),
    Packet(usize, u64),
    Other,
}

/// A packet that waits for the bandwidth caps.
#[derive(Debug)]
struct OutgoingPacket {
    stream: usize,
    packet: Arc<SentPacket>,
    ticket: Ticket,
}

impl Nats {
    /// Connects to the broker.
    pub(super) fn open(
        broker: &Broker,
        (options, identity): (&StreamOptions, &Identity),
        (kept, queue): (&Kept, &Queue),
        streams: &Streams,
        deadline: Instant,
    ) -> Result<Self, ConnectionError> {
        let link = Link::open(broker, deadline)?;
        let largest = queue.lock().packet_sizes.values().copied().max().unwrap_or_default();
        let most = link.server.max_payload;
        if largest.saturating_add(OVERHEAD) > most {
            return Err(ConnectionError::Final(format!(
                "packets of the session have up to {largest} bytes, and the broker takes messages of at most {most}: divide the rings into more \
                 packets (`packets` of the channel), or set `max_payload` of the server to at least {}",
                largest.saturating_add(OVERHEAD)
            )));
        }
        let window = (options.resend_buffer as u64).max(1);
        let sync_interval = u32::try_from(options.sync_interval.as_millis()).unwrap_or(u32::MAX);
        let again = (0..streams.count())
            .flat_map(|stream| kept.within(stream, 0, NO_SEQ).into_iter().map(move |seq| (stream, seq)));
        let framing = FrameLayout { unit: None, header: OVERHEAD / 16 };
        Ok(Self {
            name: format!("broker {}", link.server.name),
            publication: entries::publication(identity, sync_interval, window),
            throttle: Throttle::new(options.bandwidth.clone(), framing, options.sync_interval),
            window,
            in_flight: VecDeque::new(),
            again: again.collect(),
            sending: None,
            closing: None,
            has_stored: false,
            identity: identity.clone(),
            link,
        })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Returns whether the broker has stored something on this connection.
    pub(super) const fn has_stored(&self) -> bool {
        self.has_stored
    }

    /// Returns the sources to poll.
    pub(super) fn sources(&mut self) -> Vec<PollFd<'_>> {
        self.link.woken().map(|source| PollFd::new(source, PollFlags::IN)).into_iter().collect()
    }

    /// Does everything that is possible without waiting.
    pub(super) fn advance(
        &mut self,
        queue: &Queue,
        (streams, kept): (&mut Streams, &mut Kept),
    ) -> Result<NextStep, ConnectionError> {
        for _ in 0..self.link.stored()? {
            self.has_stored = true;
            match self.in_flight.pop_front() {
                Some(InFlight::Step(step)) => kept.published.done(step),
                Some(InFlight::Packet(stream, seq)) => kept.acknowledge(stream, seq + 1, queue),
                Some(InFlight::Other) | None => {}
            }
        }
        let mut goes_on = true;
        for _ in 0..BATCH {
            goes_on = self.step(queue, streams, kept);
            if !goes_on {
                break;
            }
        }
        if self.closing.as_ref().is_some_and(VecDeque::is_empty) && self.in_flight.is_empty() {
            return Ok(NextStep::Over);
        }
        let ticket = self.sending.as_ref().map(|sending| sending.ticket.time());
        Ok(NextStep::At(if goes_on { Some(Instant::now()) } else { ticket }))
    }

    fn put(&mut self, message: Publish, in_flight: InFlight) {
        self.link.publish(message);
        self.in_flight.push_back(in_flight);
    }

    /// Takes one step for a message: publishes it, begins it, or reserves bandwidth for it. Returns `false` if nothing is possible now.
    fn step(&mut self, queue: &Queue, streams: &mut Streams, kept: &mut Kept) -> bool {
        if self.sending.is_some() {
            return self.send(queue, streams);
        }
        let has_step = self.in_flight.iter().any(|it| matches!(it, InFlight::Step(_)));
        if has_step || self.in_flight.len() >= MAX_IN_FLIGHT {
            self.throttle.not_ready();
            return false;
        }
        if let Some(closing) = &mut self.closing {
            let Some(message) = closing.pop_front() else { return false };
            self.link.publish(message);
            self.in_flight.push_back(InFlight::Other);
            return true;
        }
        if !kept.published.hello() {
            self.put(self.publication.hello(), InFlight::Step(Step::Hello));
            return true;
        }
        if self.put_metadata(queue, kept) {
            return true;
        }
        if let Some((stream, seq)) = self.again.pop_front() {
            let Some(packet) = kept.get(stream, seq) else { return true };
            let ticket = self.throttle.ticket(0..packet.packet.content().len());
            self.sending = Some(OutgoingPacket { stream, packet, ticket });
            return true;
        }
        self.begin_item(queue, streams, kept) || self.begin_close(queue, streams)
    }

    /// Publishes a piece of the metadata, if there is a new one.
    fn put_metadata(&mut self, queue: &Queue, kept: &Kept) -> bool {
        let state = queue.lock();
        let Some((piece, end)) = kept.published.metadata(state.metadata.as_bytes()) else { return false };
        let message = self.publication.metadata(Piece { offset: (end - piece.len()) as u64, bytes: piece });
        drop(state);
        self.put(message, InFlight::Step(Step::Metadata(end)));
        true
    }

    /// Begins the next item of the queue.
    fn begin_item(&mut self, queue: &Queue, streams: &mut Streams, kept: &mut Kept) -> bool {
        let mut state = queue.lock();
        // The metadata for a packet must be stored first.
        if kept.published.metadata(state.metadata.as_bytes()).is_some() {
            return true;
        }
        let stream = match state.items.front() {
            None => return false,
            Some(Item::Sync(_)) => None,
            Some(Item::Packet(packet)) => {
                if kept.bytes() > 0 && kept.bytes() >= self.window {
                    drop(state);
                    self.throttle.not_ready();
                    return false;
                }
                Some(streams.number(packet))
            }
        };
        if let Some(stream) = stream.filter(|stream| !kept.published.knows(*stream)) {
            let info = &streams.get(stream).info;
            let size = state.packet_sizes.get(&info.id.class).copied().unwrap_or_default();
            drop(state);
            let message = entries::announce(&self.publication, &self.identity, stream, (info, size));
            self.put(message, InFlight::Step(Step::Announce(stream)));
            return true;
        }
        let item = state.items.pop_front();
        drop(state);
        match (item, stream) {
            (Some(Item::Packet(packet)), Some(stream)) => self.begin_new(stream, packet, queue, (streams, kept)),
            (Some(Item::Sync(time)), _) => {
                kept.published.syncs += 1;
                for message in self.publication.sync(kept.published.syncs, time, &entries::sync(time, streams)) {
                    self.put(message, InFlight::Other);
                }
            }
            _ => {}
        }
        true
    }

    /// Begins a packet that was not published before.
    fn begin_new(
        &mut self,
        stream: usize,
        mut packet: QueuedPacket,
        queue: &Queue,
        (streams, kept): (&mut Streams, &mut Kept),
    ) {
        let sent = streams.get(stream);
        if promise::keep(&mut packet.bytes, &mut packet.header, sent.promised).is_err() {
            return queue.lost(&packet, LostPackets::Late);
        }
        let (size, most) = (packet.content().len(), self.link.server.max_payload);
        if size.saturating_add(OVERHEAD) > most {
            let trouble = format!("a packet of {size} bytes is lost: the broker takes at most {most} (`max_payload`)");
            queue.change(|state| state.stats.trouble = Some(trouble));
            return queue.lost(&packet, LostPackets::Network);
        }
        let Some(ticket) = self.throttle.admit(&packet, 0..size) else {
            return queue.lost(&packet, LostPackets::Bandwidth);
        };
        let packet = SentPacket::next(sent, packet);
        kept.add(stream, &packet, true);
        self.sending = Some(OutgoingPacket { stream, packet, ticket });
    }

    /// Publishes the current packet once its time has come and bandwidth for all of it is reserved.
    fn send(&mut self, queue: &Queue, streams: &mut Streams) -> bool {
        let Some(sending) = self.sending.as_mut().filter(|sending| !sending.ticket.waits()) else { return false };
        let content = sending.packet.packet.content();
        if sending.ticket.end < content.len() {
            sending.ticket = self.throttle.ticket(sending.ticket.end..content.len());
            return true;
        }
        let Some(OutgoingPacket { stream, packet, .. }) = self.sending.take() else { return false };
        let seq = packet.packet.header.sequence;
        let route = Route { handle: stream as u64, seq, prev_seq: packet.prev_seq, circuit_id: 0 };
        let info = &streams.get(stream).info;
        let key = (info.id.class, info.id.instance);
        let message = self.publication.packet(key, &info.file_name(), route, packet.packet.content());
        self.put(message, InFlight::Packet(stream, seq));
        queue.count_sent(&packet.packet);
        true
    }

    /// Begins the end once everything is stored.
    fn begin_close(&mut self, queue: &Queue, streams: &mut Streams) -> bool {
        let state = queue.lock();
        if !state.ended || !state.items.is_empty() || !self.in_flight.is_empty() {
            return false;
        }
        let account = state.whole_account().as_ref().map(crate::account::Account::to_json).unwrap_or_default();
        drop(state);
        let messages = self.publication.close(&entries::close(streams)).into_iter();
        self.closing = Some(messages.chain(self.publication.account(&account)).collect());
        true
    }
}
