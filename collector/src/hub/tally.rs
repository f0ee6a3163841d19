//! Counts the packets and events of a stream that are in its file.
//!
//! A packet tells how many records the stream had before it, so the events of a packet are known from the next one, if that has the next number. Where
//! there is a gap between the two, those of the first are counted by decoding it, at the end: that is rare, and costs a read of the packet.

use crate::view::{Cursor, Next, View};
use std::os::unix::fs::FileExt;
use tracepoint_reader::net::relay::Index;
use tracepoint_reader::udp::wire::PacketHeader;
use tracepoint_reader::{Metadata, PacketDecoder};

/// The most packets with a gap behind them that are remembered. The events of further ones count as lost.
const MOST: usize = 1 << 16;
/// The size of the header of a packet.
const HEADER: usize = 96;

/// What is in the file of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) packets: u64,
    events: u64,
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
            let uncounted = std::mem::take(&mut self.uncounted);
            self.events += decoded(&uncounted, view, metadata).unwrap_or_default();
        }
        self.events
    }

    /// The tally of what an earlier collector has stored. Costs a read for each packet.
    pub(crate) fn of(view: &View) -> Self {
        let mut tally = Self::default();
        each(view, |index, _, header| tally.add(index.packet_number, header.events_before));
        tally
    }
}

/// Looks at the packets of a stream: index, offset for [`View::place`], and header.
fn each(view: &View, mut look: impl FnMut(&Index, u64, &PacketHeader)) {
    let mut cursor: Cursor = view.begin();
    while let Ok(Next::Packet { offset, index }) = view.next(&mut cursor) {
        let mut header = [0; HEADER];
        if view.place(offset).is_some_and(|(file, offset)| file.read_exact_at(&mut header, offset).is_ok()) {
            look(&index, offset, &PacketHeader::parse(&header));
        }
    }
}

/// The events of these packets, which are in order.
fn decoded(numbers: &[u64], view: &View, metadata: &View) -> Option<u64> {
    let (_, segment) = metadata.metadata().last()?;
    let mut text = vec![0; usize::try_from(segment.bytes).ok()?];
    segment.data.read_exact_at(&mut text, 0).ok()?;
    let metadata = Metadata::parse(&text).ok()?;
    let mut events = 0;
    each(view, |index, offset, header| {
        if numbers.binary_search(&index.packet_number).is_err() {
            return;
        }
        let mut packet = vec![0; usize::try_from(header.size()).unwrap_or_default()];
        let read = view.place(offset).is_some_and(|(file, offset)| file.read_exact_at(&mut packet, offset).is_ok());
        let decoder = if read { PacketDecoder::new(&metadata, &packet).ok() } else { None };
        events += decoder.map_or(0, |decoder| decoder.flatten().count() as u64);
    });
    Some(events)
}
