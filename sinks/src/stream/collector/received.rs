//! Handles the collector's messages.

use super::data::OutgoingPacket;
use super::{Collector, Kept, Phase, Retransmission};
use crate::stream::queue::Queue;
use crate::stream::session::ConnectionError;
use crate::stream::streams::Streams;
use std::io::{self, ErrorKind};
use std::time::{Instant, SystemTime};
use tracepoint_ring::clock;
use tracepoint_wire::stream::{
    AnnounceReply, DecodeError, ErrorCode, FRAME_HEADER, FrameHeader, NackEntry, SeqRange, StreamTotals, ToCollector,
    ToSender,
};

/// Returns the error for a malformed message.
pub(super) fn malformed(error: DecodeError) -> ConnectionError {
    ConnectionError::Temporary(io::Error::new(
        ErrorKind::InvalidData,
        format!("a message of the collector cannot be read: {error}"),
    ))
}

/// Strips control characters from the collector's text.
fn printable(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(1000).collect()
}

/// Returns the error for a refusal by the collector.
pub(super) fn refused(code: ErrorCode, text: &str) -> ConnectionError {
    let text = format!("the collector refuses: {} (error {})", printable(text), code.number());
    if code.is_temporary() { ConnectionError::Temporary(io::Error::other(text)) } else { ConnectionError::Final(text) }
}

impl Collector {
    /// Handles the messages that have arrived.
    pub(super) fn handle_messages(
        &mut self,
        queue: &Queue,
        (streams, kept): (&mut Streams, &mut Kept),
        now: Instant,
    ) -> Result<(), ConnectionError> {
        self.announce_known(queue, streams);
        let input = std::mem::take(self.control.input_mut());
        let mut at = 0;
        let handled = loop {
            let Some(header) = FrameHeader::decode(&input[at..]) else { break Ok(()) };
            let header = match header {
                Ok(header) => header,
                Err(error) => break Err(malformed(error)),
            };
            let end = at + FRAME_HEADER + header.size;
            let Some(payload) = input.get(at + FRAME_HEADER..end) else { break Ok(()) };
            self.heard = now;
            at = end;
            let message = ToSender::decode(header.kind, payload).map_err(malformed);
            if let Err(trouble) = message.and_then(|message| self.handle(message, queue, (streams, kept))) {
                break Err(trouble);
            }
        };
        *self.control.input_mut() = input;
        self.control.consume(at);
        handled
    }

    /// Announces the streams of earlier connections, once.
    pub(super) fn announce_known(&mut self, queue: &Queue, streams: &mut Streams) {
        if !self.handles.is_empty() || !self.refused.is_empty() {
            return;
        }
        for number in 0..streams.count() {
            let sent = streams.get(number);
            sent.last_before = sent.last.map(|last| last.sequence);
            let class = sent.info.id.class;
            let size = queue.lock().packet_sizes.get(&class).copied().unwrap_or_default();
            self.announce(number, streams, size);
        }
    }

    fn handle(
        &mut self,
        message: ToSender<'_>,
        queue: &Queue,
        (streams, kept): (&mut Streams, &mut Kept),
    ) -> Result<(), ConnectionError> {
        match message {
            ToSender::Announced(announced) => self.announced(announced, kept),
            ToSender::NoRoom(request, why) => self.refused(request as usize, why, queue, kept),
            ToSender::Ack(ack) => {
                self.throttle.stored();
                for entry in ack.entries {
                    if let Some(number) = self.numbers.get(&entry.handle) {
                        kept.acknowledge(*number, entry.next, queue);
                    }
                }
            }
            ToSender::Nack(nack) => {
                self.throttle.missed();
                nack.entries.iter().for_each(|entry| self.send_again(entry, (streams, kept)));
            }
            ToSender::ClockReply(reply) if self.has_system_clock => {
                let (now, time) = (clock::now(), SystemTime::now());
                kept.alignment.observe(&reply, now);
                let clock = kept.alignment.ahead_of(now, time);
                queue.change(|state| state.stats.clock = clock);
            }
            ToSender::Flow(reason) => {
                self.is_paused = reason.is_some();
                let trouble = reason.map(|reason| format!("the collector cannot store: {reason}"));
                queue.change(|state| state.stats.trouble = trouble);
            }
            ToSender::Closed(closed) => self.closed(&closed, queue, (streams, kept)),
            ToSender::Lost(lost) => self.given_up(&lost, queue, kept),
            ToSender::Done => self.phase = Phase::Done,
            ToSender::Error(code, text) => return Err(refused(code, text)),
            // Messages of later versions.
            _ => {}
        }
        Ok(())
    }

    fn announced(&mut self, announced: AnnounceReply, kept: &Kept) {
        let number = announced.request as usize;
        let Some(handle) = self.handles.get_mut(&number).filter(|handle| handle.is_none()) else { return };
        *handle = Some(announced.handle);
        self.numbers.insert(announced.handle, number);
        if self.gives_up {
            return;
        }
        // Packets before `next` are kept until they are acknowledged; the collector reports those that it has given up before that.
        let kept = kept.within(number, announced.next, u64::MAX).into_iter();
        self.again.extend(kept.map(|seq| Retransmission { stream: number, seq, part: None }));
    }

    /// Handles the refusal of a stream. Its kept packets are dropped, because they would take room from other streams.
    fn refused(&mut self, number: usize, why: &str, queue: &Queue, kept: &mut Kept) {
        if self.handles.get(&number).is_none_or(Option::is_some) {
            return;
        }
        self.handles.remove(&number);
        self.refused.insert(number, Instant::now());
        kept.lose(number, 0, u64::MAX, queue);
        let trouble = format!("the collector refuses a stream: {}", printable(why));
        queue.change(|state| state.stats.trouble = Some(trouble));
    }

    /// Queues packets, or a part of one, to be sent again, and reports those that are gone. Packets sent on this TCP connection are underway.
    fn send_again(&mut self, entry: &NackEntry, (streams, kept): (&mut Streams, &Kept)) {
        let NackEntry { handle, first, last, offset, length } = *entry;
        let part = (length > 0).then_some((offset, length));
        let Some(number) = self.numbers.get(&handle).copied() else { return };
        let Some(last) = self.data.last_to_send_again(last, streams.get(number)) else { return };
        // The collector repeats its request while the answer is being sent.
        let present =
            self.present().find(|sending| sending.is_again && sending.handle() == handle).map(OutgoingPacket::seq);
        let mut gone = |first: u64, last: u64| {
            ToCollector::Gone(SeqRange { handle, first, last }).encode(self.control.output());
        };
        let mut next = first;
        // After giving up in the middle of a record, the data connection can carry no more packets.
        let kept = if self.gives_up { Vec::new() } else { kept.within(number, first, last) };
        for seq in kept {
            if seq > next {
                gone(next, seq - 1);
            }
            next = seq.saturating_add(1);
            let again = Retransmission { stream: number, seq, part };
            if present != Some(seq) && !self.again.contains(&again) {
                self.again.push_back(again);
            }
        }
        if next <= last {
            gone(next, last);
        }
    }

    /// Drops packets that the collector has given up, so that they are counted only once if a new connection reports them again.
    fn given_up(&self, lost: &SeqRange, queue: &Queue, kept: &mut Kept) {
        if let Some(number) = self.numbers.get(&lost.handle) {
            kept.lose(*number, lost.first, lost.last, queue);
        }
    }

    /// Handles the completion of streams: packets that were sent and not delivered are lost.
    fn closed(&mut self, closed: &[StreamTotals], queue: &Queue, (streams, kept): (&mut Streams, &mut Kept)) {
        let Phase::Closing(open) = &mut self.phase else { return };
        for delivered in closed.iter().filter(|delivered| open.remove(&delivered.handle)) {
            let Some(number) = self.numbers.get(&delivered.handle) else { continue };
            kept.release(*number, queue);
            // A collector that does not count events reports 0 twice.
            let counts = delivered.events > 0 || delivered.events_lost > 0 || delivered.packets == 0;
            let events = counts.then_some(delivered.events);
            let stream = streams.get(*number).info.id;
            queue.change(|state| state.deliveries.complete(stream, delivered.packets, events));
        }
        if open.is_empty() {
            self.send_account(queue);
        }
    }
}
