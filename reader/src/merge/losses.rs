//! Losses between the packets of a stream.

use std::sync::Arc;

use crate::event::Stream;
use crate::loss::{Loss, LossKind};
use crate::packet::Packet;
use crate::stream::{PacketEnd, Step};

/// The counters of a stream before its first packet, and at its end; `None` where they are not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct KnownCounters {
    /// The number of the next packet.
    pub(crate) sequence: Option<u64>,
    /// Events written to the ring.
    pub(crate) events: Option<u64>,
    /// Discarded events.
    pub(crate) discarded: Option<u64>,
    /// The counters at its end, if its last packets may be missing.
    pub(crate) at_end: Option<CountersAtEnd>,
    /// True if all packets of the stream are missing.
    pub(crate) is_missing: bool,
}

/// The counters of a stream at its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CountersAtEnd {
    /// Events written to the ring.
    pub(crate) events: u64,
    /// Discarded events.
    pub(crate) discarded: u64,
}

impl KnownCounters {
    /// The counters of a stream that begins with this packet or with an earlier one that is missing. Streams of other tracers, which do not count the
    /// events before a packet, may begin with any counters.
    pub(crate) fn of_beginning(first: &Packet) -> Self {
        let zero = first.events_before.map(|_| 0);
        Self { sequence: zero, events: zero, discarded: zero, ..Self::default() }
    }
}

/// Compares each packet of a stream with the previous one.
#[derive(Clone, Debug)]
pub(crate) struct LossFinder {
    previous: Option<Previous>,
    /// The packet that has begun, according to [`pass`](Self::pass).
    open: Option<Arc<Packet>>,
    first: KnownCounters,
    /// Time of the first packet, in nanoseconds since the epoch.
    begin: i64,
}

/// The counters of the previous packet.
#[derive(Clone, Debug)]
struct Previous {
    packet: Arc<Packet>,
    end: PacketEnd,
}

impl LossFinder {
    pub(crate) fn new(begin: i64, first: KnownCounters) -> Self {
        Self { previous: None, open: None, first, begin }
    }

    /// The end of the last packet, in cycles.
    pub(super) fn end(&self) -> Option<u64> {
        Some(self.previous.as_ref()?.end.end)
    }

    /// Follows a step of the stream's reader. The losses before a packet are still found after its begin.
    pub(super) fn pass(&mut self, step: &Step) {
        let end = match step {
            Step::Begin(packet) => return self.open = Some(Arc::clone(packet)),
            Step::Event(_) => return,
            Step::End(end) => Some(*end),
            Step::Damage(_) => None,
        };
        if let Some(packet) = self.open.take() {
            self.ended(packet, end);
        }
    }

    /// Notes the end of a packet; without an end, it was damaged.
    pub(crate) fn ended(&mut self, packet: Arc<Packet>, end: Option<PacketEnd>) {
        // The damaged packet and its events do not count as missing.
        let end = end.unwrap_or_else(|| PacketEnd { events: u64::MAX, end: packet.end.unwrap_or(0) });
        self.previous = Some(Previous { packet, end });
    }

    /// The losses before a packet: packets, and events.
    pub(crate) fn before(&self, stream: &Arc<Stream>, packet: &Packet) -> impl Iterator<Item = Loss> + use<> {
        let previous = self.previous.as_ref().map(|previous| stream.nanoseconds(previous.end.end));
        // Packets need not have times.
        let begin = packet.begin.map_or(previous.unwrap_or(self.begin), |begin| stream.nanoseconds(begin));
        // A packet that was never closed has no end yet.
        let end = packet.end.map_or(begin, |end| stream.nanoseconds(end)).max(begin);
        let from = previous.unwrap_or(begin);
        let packets = match &self.previous {
            Some(previous) => missing_packets(previous, packet),
            None => missing_before(self.first, packet),
        };
        let before = self.previous.as_ref().map_or(self.first.discarded, |previous| previous.packet.discarded);
        let events = discarded_events(before, packet);
        let stream = Arc::clone(stream);
        let losses = [(packets, begin), (events, end)].into_iter();
        losses.filter_map(move |(kind, to_ns)| {
            Some(Loss { stream: Arc::clone(&stream), kind: kind?, from_ns: from, to_ns })
        })
    }
}

impl LossFinder {
    /// The losses after the last packet; returned once.
    pub(crate) fn finish(&mut self, stream: &Arc<Stream>) -> impl Iterator<Item = Loss> + use<> {
        // A stream that is fed has ends between its packets, and no counters at its end.
        let known = self.first.at_end.map(|at_end| (at_end, self.previous.take()));
        let known = known.filter(|(_, last)| last.is_some() || std::mem::take(&mut self.first.is_missing));
        let losses = known.map(|(at_end, last)| {
            let (total, discarded, time) = match last {
                Some(Previous { packet, end }) => {
                    let total = packet.events_before.and_then(|before| before.checked_add(end.events));
                    (total, packet.discarded, stream.nanoseconds(end.end))
                }
                None => (self.first.events, self.first.discarded, self.begin),
            };
            let missing = total.map_or(0, |total| at_end.events.saturating_sub(total));
            let discarded = discarded.map_or(0, |discarded| at_end.discarded.saturating_sub(discarded));
            let packets = (missing > 0).then_some(LossKind::Packets { packets: None, events: Some(missing) });
            let events = (discarded > 0).then_some(LossKind::Events(Some(discarded)));
            let loss = |kind| Loss { stream: Arc::clone(stream), kind, from_ns: time, to_ns: time };
            [packets.map(loss), events.map(loss)]
        });
        losses.into_iter().flatten().flatten()
    }
}

/// The loss before the first packet.
fn missing_before(before: KnownCounters, first: &Packet) -> Option<LossKind> {
    let missing =
        |now: Option<u64>, before: Option<u64>| now.zip(before).map(|(now, before)| now.saturating_sub(before));
    let packets = missing(first.sequence, before.sequence);
    let events = missing(first.events_before, before.events);
    let any = packets.is_some_and(|n| n > 0) || events.is_some_and(|n| n > 0);
    any.then_some(LossKind::Packets { packets, events })
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

/// The distance between two packet numbers of `bits` bits that wrap around; `None` if the number does not increase.
fn step(previous: u64, number: u64, bits: u8) -> Option<u64> {
    let unused = 64 - u32::from(bits);
    // Both numbers share the upper bits, which cancel out.
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
