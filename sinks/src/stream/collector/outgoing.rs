//! Sends packets and synchronisation points, in the order of the queue.

use super::data::OutgoingPacket;
use super::kept::SentPacket;
use super::{Collector, Kept, Phase, REFUSED_TIME, Retransmission};
use crate::stream::promise;
use crate::stream::queue::{Item, Queue, QueuedPacket};
use crate::stream::session::ConnectionError;
use crate::stream::streams::Streams;
use crate::stream_stats::LostPackets;

impl Collector {
    /// Sends the rest of the current packet, and between its slices requested packets. Returns `false` if not everything can be sent now.
    pub(super) fn finish_packet(&mut self, queue: &Queue, kept: &Kept) -> Result<bool, ConnectionError> {
        while let Some(sending) = &mut self.sending {
            if sending.ticket.waits() {
                return Ok(false);
            }
            if !self.data.send(sending)? {
                self.throttle.not_ready();
                return Ok(false);
            }
            if let Some(rest) = sending.unpaid() {
                if !self.interrupt(kept)
                    && let Some(sending) = &mut self.sending
                {
                    sending.ticket = self.throttle.ticket(rest);
                }
                continue;
            }
            let next = self.interrupted.take();
            if let Some(OutgoingPacket { packet, is_again, .. }) = std::mem::replace(&mut self.sending, next) {
                queue.count_sent(&packet.packet);
                if self.window == 0 && !is_again {
                    queue.finished(&packet.packet);
                }
            }
        }
        Ok(true)
    }

    /// Sends requested packets before the rest of the current one, which may take seconds at a cap; the collector waits for them for a limited
    /// time. Over TCP, packets cannot interrupt each other.
    fn interrupt(&mut self, kept: &Kept) -> bool {
        let can_wait = self.sending.as_ref().is_some_and(|sending| !sending.is_again);
        let next = if can_wait && self.data.is_udp() && !self.is_paused { self.next_again(kept) } else { None };
        let interrupts = next.is_some();
        if interrupts {
            self.interrupted = std::mem::replace(&mut self.sending, next);
        }
        interrupts
    }

    /// Returns the next packet that is to be sent again and still kept.
    fn next_again(&mut self, kept: &Kept) -> Option<OutgoingPacket> {
        loop {
            let Retransmission { stream, seq, part } = self.again.pop_front()?;
            if let Some(packet) = kept.get(stream, seq) {
                let part = self.data.part(&packet.packet, part);
                let ticket = self.throttle.ticket(part.clone());
                return Some(OutgoingPacket::new(packet, self.handle_of(stream), (part, ticket), true));
            }
        }
    }

    /// Returns whether a packet is kept. Without a resend buffer, only empty packets are; each stream has one at its end.
    const fn keeps(&self, packet: &SentPacket) -> bool {
        self.window > 0 || packet.packet.events() == 0
    }

    /// Returns whether a stream's announcement is unanswered.
    pub(super) fn is_attaching(&self) -> bool {
        self.handles.values().any(Option::is_none)
    }

    /// While the current packet waits for the caps: sends synchronisation points queued behind it, and drops packets queued before those that have
    /// waited too long. The caps do not delay control messages.
    pub(super) fn pass_by(&mut self, queue: &Queue, streams: &mut Streams, kept: &mut Kept) {
        let waits = self.sending.as_ref().is_some_and(|sending| !sending.is_blocked);
        while waits && !self.is_attaching() && self.phase == Phase::Streaming {
            let mut state = queue.lock();
            let is_due = state.items.front().is_some_and(|item| match item {
                Item::Sync(_) => true,
                Item::Packet(packet) => self.throttle.is_overdue(packet),
            });
            let item = if is_due { state.items.pop_front() } else { None };
            self.send_metadata(&state.metadata);
            drop(state);
            match item {
                Some(Item::Sync(time)) => self.synchronise(time, streams, kept),
                Some(Item::Packet(packet)) => queue.lost(&packet, LostPackets::Bandwidth),
                None => return,
            }
        }
    }

    /// Begins the next packet or item of the queue. Returns `false` if none can be begun now.
    pub(super) fn begin_item(
        &mut self,
        queue: &Queue,
        streams: &mut Streams,
        kept: &mut Kept,
    ) -> Result<bool, ConnectionError> {
        if self.gives_up || self.sending.is_some() || self.is_attaching() || self.is_paused {
            self.throttle.not_ready();
            return Ok(false);
        }
        self.sending = self.next_again(kept);
        if self.sending.is_some() {
            return Ok(true);
        }
        if self.phase != Phase::Streaming {
            return Ok(false);
        }
        let mut state = queue.lock();
        let stream = match state.items.front() {
            None => return Ok(false),
            Some(Item::Sync(_)) => None,
            Some(Item::Packet(packet)) => {
                if self.window > 0 && kept.bytes() > 0 && kept.bytes() >= self.window {
                    self.throttle.not_ready();
                    return Ok(false);
                }
                Some(streams.number(packet))
            }
        };
        self.send_metadata(&state.metadata);
        if stream.is_some_and(|stream| self.refused.get(&stream).is_some_and(|since| since.elapsed() < REFUSED_TIME)) {
            let item = state.items.pop_front();
            drop(state);
            if let Some(Item::Packet(packet)) = item {
                queue.lost(&packet, LostPackets::Refused);
            }
            return Ok(true);
        }
        if let Some(stream) = stream.filter(|stream| !self.handles.contains_key(stream)) {
            let class = streams.get(stream).info.id.class;
            let size = state.packet_sizes.get(&class).copied().unwrap_or_default();
            drop(state);
            self.announce(stream, streams, size);
            self.control.flush()?;
            return Ok(false);
        }
        let item = state.items.pop_front();
        drop(state);
        match (item, stream) {
            (Some(Item::Packet(packet)), Some(stream)) => self.begin_new(stream, packet, queue, (streams, kept)),
            (Some(Item::Sync(time)), _) => self.synchronise(time, streams, kept),
            _ => {}
        }
        Ok(true)
    }

    /// Begins a packet that has not been sent before.
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
        let part = self.data.part(&packet, None);
        let Some(ticket) = self.throttle.admit(&packet, part.clone()) else {
            return queue.lost(&packet, LostPackets::Bandwidth);
        };
        let packet = SentPacket::next(sent, packet);
        kept.takes_room = self.window > 0;
        kept.add(stream, &packet, self.keeps(&packet));
        self.sending = Some(OutgoingPacket::new(packet, self.handle_of(stream), (part, ticket), false));
    }

    fn handle_of(&self, stream: usize) -> u64 {
        self.handles.get(&stream).copied().flatten().unwrap_or_default()
    }
}
