//! Counts the packets and events in a stream's file.
//!
//! A packet contains the number of records in the stream before it. So the events of a packet follow from the next packet, if that has the next
//! number. Otherwise its events are counted by decoding it at the end of the file, which is rare and costs a read of the packet.

use crate::storage::Segment;
use crate::view::View;
use std::os::unix::fs::FileExt;
use tracepoint_reader::account::PriorCounts;
use tracepoint_reader::{Metadata, PacketDecoder};
use tracepoint_wire::PacketHeader;
use tracepoint_wire::relay::Index;

/// Maximum number of packets remembered for decoding. Events of further ones count as lost.
const MAX: usize = 1 << 16;
/// Size of a packet's header in bytes.
const HEADER: usize = 96;

/// Counts of a stream's file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) packets: u64,
    events: u64,
    /// Number of packets in earlier files, and the stream's counters at their end.
    before: u64,
    end: PriorCounts,
    /// The number of the last packet, and the count of records before it.
    last: Option<(u64, u64)>,
    /// Packets whose events are not counted yet.
    uncounted: Vec<u64>,
}

impl Tally {
    /// Counts a stored packet; the stream had `events_before` records before it.
    pub(crate) fn add(&mut self, seq: u64, events_before: u64) {
        self.packets += 1;
        self.step(seq, events_before);
        self.last = Some((seq, events_before));
    }

    /// Counts the events of the last packet if `next` is its successor; otherwise remembers it.
    fn step(&mut self, next: u64, events_before: u64) {
        match self.last {
            Some((last, before)) if last + 1 == next => self.events += events_before.saturating_sub(before),
            Some((last, _)) if self.uncounted.len() < MAX => self.uncounted.push(last),
            _ => {}
        }
    }

    /// Returns the total of events, given the number of the last packet sent and the number of records at the end of the stream. Decodes remembered
    /// packets from the file.
    pub(crate) fn events(&mut self, last: u64, events_after: u64, view: &View, metadata: &View) -> u64 {
        if last != u64::MAX {
            self.step(last + 1, events_after);
            self.last = None;
        }
        if !self.uncounted.is_empty()
            && let Some(metadata) = text(metadata).and_then(|text| Metadata::parse(&text).ok())
        {
            self.count(view, &metadata);
        }
        self.events
    }

    /// Counts the events of all stored packets when the file ends here and another follows. Returns the stream's counters.
    pub(crate) fn settle(&mut self, view: &View, metadata: &Metadata) -> PriorCounts {
        let last = self.last.take();
        self.uncounted.extend(last.map(|(seq, _)| seq));
        let counted = self.count(view, metadata);
        if let Some(((seq, before), (counted, (events, discarded)))) = last.zip(counted) {
            self.end.recorded = if seq == counted { before + events } else { before };
            self.end.discarded = discarded;
        }
        (self.end.packets, self.end.written) = (self.packets, self.events);
        self.end
    }

    /// Decodes the remembered packets. Returns the number of the last one, its events, and the discarded events up to its end.
    fn count(&mut self, view: &View, metadata: &Metadata) -> Option<(u64, (u64, u64))> {
        let uncounted = std::mem::take(&mut self.uncounted);
        let (segment, first) = (view.current()?, *uncounted.first()?);
        let numbers = (0..self.packets - self.before).rev();
        let entries = numbers.map_while(|number| segment.entry(number).ok());
        let mut end = None;
        // Backwards, because they are mostly near the end.
        for (offset, index) in entries.take_while(|(_, index)| index.packet_number >= first) {
            if uncounted.binary_search(&index.packet_number).is_ok() {
                let events = decoded(segment, offset, &index, metadata);
                self.events += events;
                end.get_or_insert((index.packet_number, (events, index.discarded)));
            }
        }
        end
    }

    /// Returns the tally of an earlier collector's files: counters up to the current file, and its packets. Costs a read per packet.
    pub(crate) fn of(view: &View, end: PriorCounts) -> Self {
        let mut tally = Self { packets: end.packets, before: end.packets, events: end.written, end, ..Self::default() };
        if let Some(segment) = view.current() {
            for (offset, index) in (0..segment.entries).map_while(|number| segment.entry(number).ok()) {
                let mut header = [0; HEADER];
                if segment.data.read_exact_at(&mut header, offset).is_ok() {
                    tally.add(index.packet_number, PacketHeader::parse(&header).events_before);
                }
            }
        }
        tally
    }

    /// Begins another file.
    pub(crate) const fn next_file(&mut self) {
        self.before = self.packets;
    }

    /// Returns whether the current file has packets.
    pub(crate) const fn has_file(&self) -> bool {
        self.packets > self.before
    }
}

/// Returns the stored metadata; `None` if there is none yet.
pub(crate) fn text(metadata: &View) -> Option<Vec<u8>> {
    let segment = metadata.current()?;
    let mut text = vec![0; usize::try_from(segment.bytes).ok().filter(|bytes| *bytes > 0)?];
    segment.data.read_exact_at(&mut text, 0).ok()?;
    Some(text)
}

fn decoded(segment: &Segment, offset: u64, index: &Index, metadata: &Metadata) -> u64 {
    let mut packet = vec![0; usize::try_from(index.packet_size / 8).unwrap_or_default()];
    let is_read = segment.data.read_exact_at(&mut packet, offset).is_ok();
    let decoder = if is_read { PacketDecoder::new(metadata, &packet).ok() } else { None };
    decoder.map_or(0, |decoder| decoder.flatten().count() as u64)
}
