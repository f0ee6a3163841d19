//! Counts the packets and events of a stream that are in its file.
//!
//! A packet tells how many records the stream had before it, so the events of a packet are known from the next one, if that has the next number. Where
//! there is a gap between the two, those of the first are counted by decoding it, at the end of its file: that is rare, and costs a read of the packet.

use crate::storage::Segment;
use crate::view::View;
use std::os::unix::fs::FileExt;
use tracepoint_reader::account::Before;
use tracepoint_reader::{Metadata, PacketDecoder};
use tracepoint_wire::relay::Index;
use tracepoint_wire::udp::PacketHeader;

/// The most packets with a gap behind them that are remembered. The events of further ones count as lost.
const MOST: usize = 1 << 16;
/// The size of the header of a packet.
const HEADER: usize = 96;

/// What is in the file of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) packets: u64,
    events: u64,
    /// The packets in files before the present one, and where the stream was at their end.
    before: u64,
    end: Before,
    /// The number of the last packet, and the records before it.
    last: Option<(u64, u64)>,
    /// Packets whose events are not counted yet.
    uncounted: Vec<u64>,
}

impl Tally {
    /// A packet was stored; the stream had so many records before it.
    pub(crate) fn add(&mut self, seq: u64, events_before: u64) {
        self.packets += 1;
        self.step(seq, events_before);
        self.last = Some((seq, events_before));
    }

    /// The events of the last packet are known if the next one is this.
    fn step(&mut self, next: u64, events_before: u64) {
        match self.last {
            Some((last, before)) if last + 1 == next => self.events += events_before.saturating_sub(before),
            Some((last, _)) if self.uncounted.len() < MOST => self.uncounted.push(last),
            _ => {}
        }
    }

    /// The events in all, when the last packet that was sent is `last`, and the stream has `events_after` records up to its end. Takes those that it
    /// has to count from the file.
    pub(crate) fn events(&mut self, last: u64, events_after: u64, view: &View, metadata: &View) -> u64 {
        if last != u64::MAX {
            self.step(last + 1, events_after);
            self.last = None;
        }
        if !self.uncounted.is_empty() {
            if let Some(metadata) = text(metadata).and_then(|text| Metadata::parse(&text).ok()) {
                self.count(view, &metadata);
            }
        }
        self.events
    }

    /// Counts the events of all packets that are stored, as the file ends here and another one follows: where the stream is.
    pub(crate) fn settle(&mut self, view: &View, metadata: &Metadata) -> Before {
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

    /// Counts what is not counted yet; the number of the last packet, its events, and those that were discarded up to its end.
    fn count(&mut self, view: &View, metadata: &Metadata) -> Option<(u64, (u64, u64))> {
        let uncounted = std::mem::take(&mut self.uncounted);
        let (segment, first) = (view.current()?, *uncounted.first()?);
        let numbers = (0..self.packets - self.before).rev();
        let entries = numbers.map_while(|number| segment.entry(number).ok());
        let mut end = None;
        // From the end on, where they mostly are.
        for (offset, index) in entries.take_while(|(_, index)| index.packet_number >= first) {
            if uncounted.binary_search(&index.packet_number).is_ok() {
                let events = decoded(segment, offset, &index, metadata);
                self.events += events;
                end.get_or_insert((index.packet_number, (events, index.discarded)));
            }
        }
        end
    }

    /// The tally of what an earlier collector has stored: up to the present file, and in it. Costs a read for each packet.
    pub(crate) fn of(view: &View, end: Before) -> Self {
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

    /// Another file begins.
    pub(crate) const fn next_file(&mut self) {
        self.before = self.packets;
    }

    /// Whether the present file has packets.
    pub(crate) const fn has_file(&self) -> bool {
        self.packets > self.before
    }
}

/// The metadata that is stored; `None`: nothing yet.
pub(crate) fn text(metadata: &View) -> Option<Vec<u8>> {
    let segment = metadata.current()?;
    let mut text = vec![0; usize::try_from(segment.bytes).ok().filter(|bytes| *bytes > 0)?];
    segment.data.read_exact_at(&mut text, 0).ok()?;
    Some(text)
}

/// The events of a packet.
fn decoded(segment: &Segment, offset: u64, index: &Index, metadata: &Metadata) -> u64 {
    let mut packet = vec![0; usize::try_from(index.packet_size / 8).unwrap_or_default()];
    let is_read = segment.data.read_exact_at(&mut packet, offset).is_ok();
    let decoder = if is_read { PacketDecoder::new(metadata, &packet).ok() } else { None };
    decoder.map_or(0, |decoder| decoder.flatten().count() as u64)
}
