//! One stream in the merge: its next item, and the losses between its packets.

use std::collections::VecDeque;
use std::sync::Arc;

use super::Item;
use crate::loss::{Loss, LossKind};
use crate::metadata::Metadata;
use crate::packet::Packet;
use crate::stream::{PacketEnd, Step, StreamReader};

/// The counters of the previous packet.
#[derive(Debug)]
struct Previous {
    packet: Arc<Packet>,
    end: PacketEnd,
}

#[derive(Debug)]
pub(super) struct StreamCursor {
    reader: StreamReader,
    /// Items that are ready, with their times.
    ready: VecDeque<(i64, Item)>,
    packet: Option<Arc<Packet>>,
    previous: Option<Previous>,
    /// Events that were discarded before the first packet, if known.
    discarded_before: Option<u64>,
    /// Time of the last item, which is the time of damage.
    last: i64,
}

impl StreamCursor {
    /// `begin` is the time of the first packet, in nanoseconds since the epoch.
    pub(super) fn new(reader: StreamReader, begin: i64, discarded_before: Option<u64>) -> Self {
        Self { reader, ready: VecDeque::new(), packet: None, previous: None, discarded_before, last: begin }
    }

    /// How many packets so far have no checksum.
    pub(super) fn unchecked(&self) -> u64 {
        self.reader.unchecked()
    }

    /// The next packets of a stream that has no item left.
    pub(super) fn feed(&mut self, metadata: &Metadata, bytes: Vec<u8>) {
        self.reader.set_metadata(metadata);
        self.reader.feed(bytes);
    }

    /// Where the last packet ended, in nanoseconds since the epoch: no later packet begins before it.
    pub(super) fn end(&self) -> Option<i64> {
        Some(self.reader.stream()?.nanoseconds(self.previous.as_ref()?.end.end))
    }

    /// The next item, if one is ready.
    pub(super) fn take(&mut self) -> Option<Item> {
        self.ready.pop_front().map(|(_, item)| item)
    }

    /// Prepares the next item and returns its time; `None` at the end of the stream.
    pub(super) fn advance(&mut self) -> Option<i64> {
        while self.ready.is_empty() {
            match self.reader.next()? {
                Step::Begin(packet) => {
                    self.losses(&packet);
                    self.packet = Some(packet);
                }
                Step::Event(event) => {
                    self.last = event.time_ns;
                    self.ready.push_back((event.time_ns, Item::Event(event)));
                }
                Step::End(end) => {
                    self.previous = self.packet.take().map(|packet| Previous { packet, end });
                }
                Step::Damage(damage) => {
                    // The damaged packet is none that is missing, and neither are the events in it.
                    if let Some(packet) = self.packet.take() {
                        let end = PacketEnd { events: u64::MAX, end: packet.end.unwrap_or(0) };
                        self.previous = Some(Previous { packet, end });
                    }
                    self.ready.push_back((self.last, Item::Damage(damage)));
                }
            }
        }
        self.ready.front().map(|(time, _)| *time)
    }

    /// Finds the losses between a packet and the previous one.
    fn losses(&mut self, packet: &Packet) {
        let Some(stream) = self.reader.stream().cloned() else {
            return;
        };
        let previous = self.previous.as_ref().map(|previous| stream.nanoseconds(previous.end.end));
        // Packets need not have times.
        let begin = packet.begin.map_or(previous.unwrap_or(self.last), |begin| stream.nanoseconds(begin));
        // A packet that was never closed has no end yet.
        let end = packet.end.map_or(begin, |end| stream.nanoseconds(end)).max(begin);
        let from = previous.unwrap_or(begin);
        let mut push = |kind, to_ns| {
            let loss = Loss { stream: stream.clone(), kind, from_ns: from, to_ns };
            self.ready.push_back((from, Item::Loss(loss)));
        };
        if let Some(kind) = self.previous.as_ref().and_then(|previous| missing_packets(previous, packet)) {
            push(kind, begin);
        }
        let before = self.previous.as_ref().map_or(self.discarded_before, |previous| previous.packet.discarded);
        if let Some(kind) = discarded_events(before, packet) {
            push(kind, end);
        }
    }
}

fn missing_packets(previous: &Previous, packet: &Packet) -> Option<LossKind> {
    let packets = match previous.packet.sequence.zip(packet.sequence) {
        Some((previous, number)) => match step(previous, number, packet.sequence_bits()) {
            Some(step) => Some(step - 1),
            None => return Some(LossKind::Renumbered { previous, number }),
        },
        None => None,
    };
    let totals = previous.packet.events_before.zip(packet.events_before);
    let events = totals.map(|(before, now)| now.saturating_sub(before.saturating_add(previous.end.events)));
    let any = packets.is_some_and(|n| n > 0) || events.is_some_and(|n| n > 0);
    any.then_some(LossKind::Packets { packets, events })
}

/// The distance between two packet numbers of this many bits, which run over; `None` if the number does not rise.
fn step(previous: u64, number: u64, bits: u8) -> Option<u64> {
    let unused = 64 - u32::from(bits);
    // The number before and the number after share the upper bits, which drop out.
    let distance = (number.wrapping_sub(previous) << unused).cast_signed() >> unused;
    u64::try_from(distance).ok().filter(|distance| *distance > 0)
}

fn discarded_events(before: Option<u64>, packet: &Packet) -> Option<LossKind> {
    let now = packet.discarded?;
    match before {
        Some(before) if now > before => Some(LossKind::Events(Some(now - before))),
        Some(before) if now < before => Some(LossKind::Events(None)),
        Some(_) => None,
        // The counter may have begun before the first packet of this file.
        None => (now > 0).then_some(LossKind::Events(None)),
    }
}

#[cfg(test)]
mod tests {
    use super::step;

    #[test]
    fn packet_numbers_run_over_and_do_not_go_back() {
        assert_eq!([step(5, 6, 64), step(5, 9, 32), step(u64::MAX, 1, 64)], [Some(1), Some(4), Some(2)]);
        assert_eq!([step(0xFFFF_FFFF, 1, 32), step(255, 0, 8)], [Some(2), Some(1)]);
        assert_eq!([step(5, 5, 64), step(6, 3, 64), step(6, 3, 8)], [None; 3]);
    }
}
