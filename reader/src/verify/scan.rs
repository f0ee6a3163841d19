//! Counts the packets and events of one stream file.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::metadata::Metadata;
use crate::packet::Packet;
use crate::stream::{PacketEnd, Step, StreamReader};

/// Only the first contradiction is described; the others are counted.
#[derive(Debug, Default)]
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
#[derive(Debug, Default)]
pub(super) struct Scan {
    /// Class and instance; `None` for an empty file.
    pub(super) stream: Option<(u64, Option<u64>)>,
    pub(super) packets: u64,
    pub(super) events: u64,
    /// Events by id.
    pub(super) decoded: BTreeMap<u64, u64>,
    /// The last packet's `events_discarded`.
    pub(super) discarded: Option<u64>,
    /// The last packet's `events_before`, and its events.
    pub(super) total: Option<u64>,
    /// The numbers of the first and the last packet.
    pub(super) sequence: Option<(u64, u64)>,
    /// The records that came before.
    before: u64,
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
    /// Packets without a checksum.
    pub(super) unchecked: u64,
}

/// The counters of the previous packet.
struct Previous {
    packet: Arc<Packet>,
    end: u64,
}

impl Scan {
    /// Reads a stream to its end. It had so many records before its first packet here.
    pub(super) fn of(metadata: &Metadata, mut reader: StreamReader, before: u64) -> Self {
        let mut scan = Self { before, ..Self::default() };
        let mut packet: Option<Arc<Packet>> = None;
        let mut previous: Option<Previous> = None;
        let mut last = 0;
        for step in reader.by_ref() {
            match step {
                Step::Begin(begun) => {
                    scan.begin(metadata, &begun, previous.as_ref());
                    last = begun.begin.unwrap_or(0);
                    packet = Some(begun);
                }
                Step::Event(event) => {
                    scan.events += 1;
                    *scan.decoded.entry(event.class.id).or_default() += 1;
                    if event.cycles < last {
                        let offset = packet.as_ref().map_or(0, |p| p.offset);
                        scan.contradictions
                            .add_packet(offset, "an event is earlier than the one before it, or than the packet");
                    }
                    last = event.cycles;
                }
                Step::End(end) => {
                    if let Some(packet) = packet.take() {
                        scan.end(&packet, end, last);
                        previous = Some(Previous { packet, end: end.end });
                    }
                }
                Step::Damage(damage) => scan.damage.add(format!("byte {}: {}", damage.offset, damage.reason)),
            }
        }
        scan.unchecked = reader.unchecked();
        scan
    }

    fn begin(&mut self, metadata: &Metadata, packet: &Packet, previous: Option<&Previous>) {
        self.stream = Some((packet.class.id, packet.instance));
        self.packets += 1;
        if packet.uuid != metadata.uuid() {
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
        let Some(Previous { packet: before, end }) = previous else {
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
