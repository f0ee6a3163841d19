//! Counts the packets and events of one stream file.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::event::Stream;
use crate::loss::Damage;
use crate::packet::Packet;
use crate::parallel::{Fold, PacketVisitor};
use crate::stream::PacketEnd;
use crate::view::EventView;

/// Contradictions, of which the first is described and the others are counted.
#[derive(Clone, Debug, Default)]
pub(super) struct Contradictions {
    count: u64,
    first: String,
}

impl Contradictions {
    fn add(&mut self, flaw: String) {
        if self.count == 0 {
            self.first = flaw;
        }
        self.count += 1;
    }

    fn add_packet(&mut self, offset: u64, what: &str) {
        self.add(format!("packet at byte {offset}: {what}"));
    }

    pub(super) fn describe(&self) -> String {
        match self.count {
            0 => "none".to_owned(),
            1 => self.first.clone(),
            count => format!("{} (and {} more)", self.first, count - 1),
        }
    }
}

/// The counts of a stream.
#[derive(Clone, Debug, Default)]
pub(super) struct Scan {
    /// The UUID of the trace.
    uuid: Option<[u8; 16]>,
    /// Class and instance; `None` for an empty file.
    pub(super) stream: Option<(u64, Option<u64>)>,
    pub(super) packets: u64,
    pub(super) events: u64,
    /// Number of events by id.
    pub(super) decoded: BTreeMap<u64, u64>,
    /// The last packet's `events_discarded`.
    pub(super) discarded: Option<u64>,
    /// The last packet's `events_before` plus its events.
    pub(super) total: Option<u64>,
    /// The numbers of the first and the last packet.
    pub(super) sequence: Option<(u64, u64)>,
    /// Number of records before this file.
    before: u64,
    previous: Option<Previous>,
    /// The sum of the jumps of `events_before` ahead of the counted events.
    pub(super) jumps: u64,
    /// Rule B.
    pub(super) foreign: Contradictions,
    /// Rule N.
    pub(super) numbers: Contradictions,
    /// Rule P.
    pub(super) contradictions: Contradictions,
    /// Rule Q.
    pub(super) damage: Contradictions,
    /// Number of packets without a checksum.
    pub(super) unchecked: u64,
}

/// The counters of the previous packet.
#[derive(Clone, Debug)]
struct Previous {
    packet: Arc<Packet>,
    end: u64,
}

/// The events of a packet.
#[derive(Debug, Default)]
pub(super) struct Counts {
    /// Number of events by id.
    decoded: BTreeMap<u64, u64>,
    /// Number of events that are earlier than the previous one, or than the packet.
    early: u64,
    /// The time of the last one, or of the packet's begin, in cycles.
    last: u64,
}

/// Counts the events of packets.
#[derive(Debug, Default)]
pub(super) struct Counter {
    counts: Counts,
    /// The id of the last events, and the number of consecutive events with it.
    id: u64,
    in_a_row: u64,
}

impl Counter {
    fn count(&mut self) {
        if self.in_a_row > 0 {
            *self.counts.decoded.entry(self.id).or_default() += std::mem::take(&mut self.in_a_row);
        }
    }
}

impl PacketVisitor for Counter {
    type Packet = Counts;

    fn begin(&mut self, packet: &Packet) {
        self.counts.last = packet.begin.unwrap_or(0);
    }

    #[inline]
    fn event(&mut self, event: &EventView<'_>) {
        let (id, time) = (event.class().id, event.cycles());
        if id != self.id {
            self.count();
            self.id = id;
        }
        self.in_a_row += 1;
        self.counts.early += u64::from(time < self.counts.last);
        self.counts.last = time;
    }

    fn end(&mut self) -> Counts {
        self.count();
        std::mem::take(&mut self.counts)
    }
}

impl Fold for Scan {
    type Packet = Counts;

    fn packet(&mut self, _stream: &Arc<Stream>, packet: Arc<Packet>, counts: Counts, end: Option<PacketEnd>) {
        self.begin(&packet);
        for (id, count) in counts.decoded {
            self.events += count;
            *self.decoded.entry(id).or_default() += count;
        }
        for _ in 0..counts.early {
            let what = "an event is earlier than the one before it, or than the packet";
            self.contradictions.add_packet(packet.offset, what);
        }
        if let Some(end) = end {
            self.end(&packet, end, counts.last);
            self.previous = Some(Previous { packet, end: end.end });
        }
    }

    fn damage(&mut self, damage: Damage) {
        self.damage.add(format!("byte {}: {}", damage.offset, damage.reason));
    }

    fn unchecked(&mut self, packets: u64) {
        self.unchecked += packets;
    }
}

impl Scan {
    /// For a stream that has `before` records before its first packet here.
    pub(super) fn new(uuid: Option<[u8; 16]>, before: u64) -> Self {
        Self { uuid, before, ..Self::default() }
    }

    fn begin(&mut self, packet: &Packet) {
        self.stream = Some((packet.class.id, packet.instance));
        self.packets += 1;
        if packet.uuid != self.uuid {
            self.foreign.add_packet(packet.offset, "its UUID is not the trace's");
        }
        if let Some(number) = packet.sequence {
            self.sequence = Some((self.sequence.map_or(number, |(first, _)| first), number));
        }
        if let Some(before) = packet.events_before {
            let counted = self.total.unwrap_or(self.before);
            match before.checked_sub(counted) {
                Some(jump) => self.jumps = self.jumps.saturating_add(jump),
                None => {
                    self.contradictions.add_packet(packet.offset, "its events_before is less than what came before it");
                }
            }
        }
        let Some(Previous { packet: before, end }) = &self.previous else {
            return;
        };
        if packet.begin.is_some_and(|begin| begin < *end) {
            self.contradictions.add_packet(packet.offset, "it begins before the packet before it ends");
        }
        if packet.discarded < before.discarded {
            self.contradictions.add_packet(packet.offset, "its events_discarded went back");
        }
        if packet.sequence.is_some() && packet.sequence <= before.sequence {
            self.numbers.add_packet(packet.offset, "its packet_seq_num does not rise");
        }
    }

    fn end(&mut self, packet: &Packet, end: PacketEnd, last: u64) {
        let written = packet.end.unwrap_or(last);
        if written < last || packet.begin.is_some_and(|begin| written < begin) {
            self.contradictions.add_packet(packet.offset, "it ends before its last event: it was never closed");
        }
        self.discarded = packet.discarded;
        self.total = packet.events_before.map(|before| before.saturating_add(end.events));
    }
}
