//! Sends packets and synchronisation points, in the order of the queue.

use super::replies::ExpectedReply;
use super::{OutgoingPacket, Phase, Relay};
use crate::stream::connection::write_parts;
use crate::stream::promise;
use crate::stream::queue::{Item, Queue, QueuedPacket};
use crate::stream::session::ConnectionError;
use crate::stream::streams::Streams;
use crate::stream_stats::LostPackets;
use tracepoint_wire::relay::{Command, DataHeader, Index};

impl Relay {
    /// Sends the rest of the current packet. Returns `false` if not everything can be sent now.
    pub(super) fn finish_packet(&mut self, queue: &Queue, streams: &mut Streams) -> Result<bool, ConnectionError> {
        let Some(sending) = &mut self.sending else { return Ok(true) };
        let parts = [&sending.head, sending.packet.content()];
        loop {
            if sending.ticket.waits() {
                return Ok(false);
            }
            let end = DataHeader::SIZE + sending.ticket.end;
            sending.is_blocked = !write_parts(&self.data, parts, &mut sending.done, end)?;
            if sending.is_blocked {
                self.throttle.not_ready();
                return Ok(false);
            }
            let rest = sending.ticket.end..parts[1].len();
            if rest.is_empty() {
                break;
            }
            sending.ticket = self.throttle.ticket(rest);
        }
        if let Some(OutgoingPacket { stream, packet, .. }) = self.sending.take() {
            let header = packet.header;
            let sent = streams.get(stream);
            sent.last = Some(header);
            let here = self.streams.entry(stream).or_default();
            here.last = Some(header.sequence);
            here.unconfirmed.push_back((header.sequence, packet.events()));
            let index = Index::of(here.handle.unwrap_or_default(), &header);
            self.ask(&Command::SendIndex(index), ExpectedReply::Code("an index"));
            queue.count_sent(&packet);
            queue.finished(&packet);
        }
        Ok(true)
    }

    /// While the current packet waits for the caps: sends beacons of other streams, and drops packets that have waited too long.
    pub(super) fn pass_by(&mut self, queue: &Queue, streams: &mut Streams) {
        let waits = self.sending.as_ref().is_some_and(|sending| !sending.is_blocked);
        while waits && self.phase == Phase::Streaming {
            let mut state = queue.lock();
            let is_due = state.items.front().is_some_and(|item| match item {
                Item::Sync(_) => !self.heartbeat.is_due(),
                Item::Packet(packet) => self.throttle.is_overdue(packet),
            });
            let item = if is_due { state.items.pop_front() } else { None };
            drop(state);
            match item {
                Some(Item::Sync(time)) => self.synchronise(time, streams),
                Some(Item::Packet(packet)) => queue.lost(&packet, LostPackets::Bandwidth),
                None => return,
            }
        }
    }

    /// Begins the next item of the queue. Returns `false` if none can be begun now.
    pub(super) fn begin_item(&mut self, queue: &Queue, streams: &mut Streams) -> Result<bool, ConnectionError> {
        if self.sending.is_some() || self.phase != Phase::Streaming {
            return Ok(false);
        }
        let mut state = queue.lock();
        let heartbeat = match state.items.front() {
            None => return Ok(false),
            Some(Item::Sync(_)) => self.heartbeat.before_sync(streams),
            Some(Item::Packet(packet)) => self.heartbeat.begin(&packet.header, streams),
        };
        if let Some(packet) = heartbeat {
            state.put_first(packet);
        }
        let stream = match state.items.front() {
            Some(Item::Packet(packet)) => Some(streams.number(packet)),
            _ => None,
        };
        if let Some(stream) = stream {
            let is_ready = self.streams.get(&stream).is_some_and(|stream| stream.handle.is_some());
            if !is_ready || self.metadata.is_none() {
                drop(state);
                self.throttle.not_ready();
                self.add_stream(stream, streams)?;
                return Ok(false);
            }
            self.send_metadata(&state.metadata);
        }
        let item = state.items.pop_front();
        drop(state);
        match (item, stream) {
            (Some(Item::Packet(packet)), Some(stream)) => self.begin_packet(stream, packet, queue, streams),
            (Some(Item::Sync(time)), _) => self.synchronise(time, streams),
            _ => {}
        }
        Ok(true)
    }

    fn begin_packet(&mut self, stream: usize, mut packet: QueuedPacket, queue: &Queue, streams: &mut Streams) {
        if promise::keep(&mut packet.bytes, &mut packet.header, streams.get(stream).promised).is_err() {
            return queue.lost(&packet, LostPackets::Late);
        }
        let Some(ticket) = self.throttle.admit(&packet, 0..packet.content().len()) else {
            return queue.lost(&packet, LostPackets::Bandwidth);
        };
        let size = packet.content().len() as u32;
        let header = DataHeader {
            circuit_id: 0,
            handle: self.streams.get(&stream).and_then(|stream| stream.handle).unwrap_or_default(),
            sequence: packet.header.sequence,
            size,
            padding: (packet.header.size() as u32).saturating_sub(size),
        };
        self.sending =
            Some(OutgoingPacket { stream, head: header.encode(), packet, done: 0, ticket, is_blocked: false });
    }
}
