//! An index of a trace by the headers of its packets, which makes it possible to read selected packets.
//!
//! [`TraceIndex`] reads a trace like [`Trace::visit_packets`], but stream by stream, and any packets of a stream. It is used by queries that need
//! only some of the packets, and by several readers that share the packets of one stream. Losses before a packet are found from the
//! packet before it, which is read for that purpose unless it is read anyway.
//!
//! After a damaged packet, everything that can be found is read. [`Trace::visit_packets`] reads less in one case: it ends a stream at an event
//! that cannot be decoded if its packet has no checksum.

use std::ops::{ControlFlow, Range};
use std::sync::{Arc, OnceLock};

use super::losses::LossFinder;
use super::{Streams, Trace, TraceStream, TraceVisitor};
use crate::event::Stream;
use crate::loss::Damage;
use crate::packet::Packet;
use crate::record::layout::ClassLayouts;
use crate::stream::{Step, StreamReader, Unit};
use crate::view::EventView;

/// The streams of a trace, and the packets of each.
#[derive(Debug)]
pub struct TraceIndex {
    streams: Vec<Arc<StreamIndex>>,
    damage: Vec<Damage>,
}

/// The packets of a stream; their headers are read on demand.
#[derive(Debug)]
pub struct StreamIndex {
    stream: Arc<Stream>,
    /// The reader in its initial state.
    reader: StreamReader,
    losses: LossFinder,
    units: OnceLock<Vec<Unit>>,
}

/// Information from the header of a packet; or of several packets that are read together, because the begin of each is uncertain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct IndexedPacket {
    /// No event in it is earlier, in nanoseconds since the epoch; `None` if unknown.
    pub begin_ns: Option<i64>,
    /// No event in it is later, likewise.
    pub end_ns: Option<i64>,
    /// Its size in bytes.
    pub size: u64,
}

impl Trace {
    /// An index of its packets. Opens each stream and reads its first packet; the headers of the others are read when
    /// [`StreamIndex::len`] or [`StreamIndex::packet`] is called.
    pub fn index(&self) -> TraceIndex {
        let Streams { all, mut damage, .. } = self.streams_since(i64::MIN);
        let mut streams = Vec::new();
        for TraceStream { reader, begin, before } in all.into_iter().filter(|stream| !stream.before.is_missing) {
            match reader.identify() {
                Some(stream) => {
                    let losses = LossFinder::new(begin, before);
                    streams.push(Arc::new(StreamIndex { stream, reader, losses, units: OnceLock::new() }));
                }
                None => damage.extend(reader.filter_map(|step| match step {
                    Step::Damage(damage) => Some(damage),
                    _ => None,
                })),
            }
        }
        TraceIndex { streams, damage }
    }
}

impl TraceIndex {
    /// The streams with at least one packet, in the order of the merge.
    pub fn streams(&self) -> &[Arc<StreamIndex>] {
        &self.streams
    }

    /// Files that cannot be read at all.
    pub fn damage(&self) -> &[Damage] {
        &self.damage
    }
}

impl StreamIndex {
    /// The stream.
    pub fn stream(&self) -> &Arc<Stream> {
        &self.stream
    }

    fn units(&self) -> &[Unit] {
        self.units.get_or_init(|| self.reader.units(&self.stream))
    }

    /// The number of packets. The first call reads the header of each packet.
    #[expect(clippy::len_without_is_empty, reason = "there is at least one")]
    pub fn len(&self) -> usize {
        self.units().len()
    }

    /// The packet with this number, counted from 0.
    ///
    /// # Panics
    /// If there is none.
    pub fn packet(&self, number: usize) -> IndexedPacket {
        let unit = &self.units()[number];
        let known = self.stream.clock().is_some() && unit.is_packet();
        let time = |cycles: Option<u64>| cycles.filter(|_| known).map(|cycles| self.stream.nanoseconds(cycles));
        IndexedPacket { begin_ns: time(unit.begin), end_ns: time(unit.end), size: unit.size }
    }

    /// Reads these packets in order. Events whose ids `is_wanted` selects are prepared for [`EventView::value`] and
    /// [`EventView::decoded`]; other events only have their time and class. With `losses`, the visitor gets the losses before each packet, and
    /// after the last one of the stream.
    pub fn read(self: &Arc<Self>, packets: Range<usize>, is_wanted: impl Fn(u64) -> bool, losses: bool) -> PacketRun {
        let count = self.units().len();
        let packets = packets.start.min(count)..packets.end.min(count);
        let layouts = ClassLayouts::of_wanted(&self.stream.class, is_wanted);
        let losses = (losses && !packets.is_empty()).then(|| self.losses_before(packets.start, &layouts));
        PacketRun {
            index: Arc::clone(self),
            packets,
            reader: self.reader.clone(),
            layouts,
            losses,
            is_reading: false,
            is_packet: false,
        }
    }

    /// The loss finder for this packet, which has seen the last undamaged packet before it.
    fn losses_before(&self, packet: usize, layouts: &ClassLayouts) -> LossFinder {
        let mut reader = self.reader.clone();
        for unit in self.units()[..packet].iter().rev() {
            let mut losses = self.losses.clone();
            self.reader.go_to(&mut reader, &self.stream, unit);
            loop {
                reader.visit(layouts, |_| ());
                let Some(step) = reader.next() else { break };
                losses.pass(&step);
                if matches!(step, Step::End(_)) && unit.is_packet() {
                    break;
                }
            }
            if losses.end().is_some() {
                return losses;
            }
        }
        self.losses.clone()
    }
}

/// Reads a range of packets of a stream.
#[derive(Debug)]
pub struct PacketRun {
    index: Arc<StreamIndex>,
    packets: Range<usize>,
    reader: StreamReader,
    layouts: ClassLayouts,
    losses: Option<LossFinder>,
    /// True while the reader is in a unit; `is_packet` then says if that unit is one packet.
    is_reading: bool,
    is_packet: bool,
}

impl PacketRun {
    /// The stream.
    pub fn stream(&self) -> &Arc<Stream> {
        &self.index.stream
    }

    /// Passes the next events to a visitor: up to the end of a packet, or until `is_full` returns true, which is called after each completely decoded
    /// event, so that packets of any size are read in bounded memory. Returns true if there may be more. If the visitor breaks at a packet, it gets
    /// no more.
    pub fn read<V: TraceVisitor>(&mut self, visitor: &mut V, is_full: impl Fn(&V) -> bool) -> bool {
        loop {
            if !self.is_reading {
                let Some(number) = self.packets.next() else {
                    let is_end = self.packets.end == self.index.units().len();
                    if let Some(losses) = self.losses.as_mut().filter(|_| is_end) {
                        losses.finish(&self.index.stream).for_each(|loss| visitor.loss(&loss));
                    }
                    return false;
                };
                let unit = &self.index.units()[number];
                self.index.reader.go_to(&mut self.reader, &self.index.stream, unit);
                (self.is_reading, self.is_packet) = (true, unit.is_packet());
            }
            self.reader.visit(&self.layouts, |event| visitor.event(event));
            let Some(step) = self.reader.next() else {
                self.is_reading = false;
                return true;
            };
            if let Some(losses) = &mut self.losses {
                losses.pass(&step);
            }
            match step {
                Step::Begin(packet) => {
                    if self.begin(&packet, visitor).is_break() {
                        self.packets = 0..0;
                        self.is_reading = false;
                        return false;
                    }
                }
                Step::Event(event) => visitor.event(&EventView::from(&event)),
                Step::End(_) => {
                    self.is_reading = !self.is_packet;
                    return true;
                }
                Step::Damage(damage) => visitor.damage(&damage),
            }
            if is_full(visitor) {
                return true;
            }
        }
    }

    fn begin(&self, packet: &Packet, visitor: &mut impl TraceVisitor) -> ControlFlow<()> {
        if let Some(losses) = &self.losses {
            losses.before(&self.index.stream, packet).for_each(|loss| visitor.loss(&loss));
        }
        visitor.packet(&self.index.stream, packet)
    }
}
