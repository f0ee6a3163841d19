//! Visits a trace packet by packet; the packets of all streams are ordered by their begin times.
//!
//! This is nearly time order, and avoids comparing and decoding each event: the events of a packet stay together, and
//! visitors get [`EventView`]s in place of events. Information that depends on the order within a stream, such as losses, is given in this order.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::ControlFlow;
use std::sync::Arc;

use super::losses::LossFinder;
use super::{Streams, Trace, TraceStream};
use crate::event::Stream;
use crate::loss::{Damage, Loss};
use crate::packet::Packet;
use crate::record::layout::{ClassLayouts, KnownLayouts};
use crate::stream::{Step, StreamReader};
use crate::view::EventView;

/// A visitor of a trace, packet by packet.
pub trait TraceVisitor {
    /// Reports a loss before the next packet of the same stream, or at its end.
    fn loss(&mut self, loss: &Loss);

    /// A packet begins; its events follow. Returning [`ControlFlow::Break`] ends the visit.
    fn packet(&mut self, stream: &Arc<Stream>, packet: &Packet) -> ControlFlow<()>;

    /// An event of that packet. It is [decoded](EventView::decoded) if it has values that [`EventView::value`] cannot return.
    fn event(&mut self, event: &EventView<'_>);

    /// A part that cannot be read: in the most recent packet, if it is in this file, or between packets.
    fn damage(&mut self, damage: &Damage);
}

/// A stream and its next packet.
struct Cursor {
    reader: StreamReader,
    losses: LossFinder,
    next: Option<Arc<Packet>>,
}

impl Cursor {
    /// Advances to the next packet; returns its begin time in nanoseconds since the epoch, or `None` at the end of the stream.
    fn advance(&mut self, visitor: &mut impl TraceVisitor) -> Option<i64> {
        loop {
            let Some(step) = self.reader.next() else {
                let losses = self.reader.stream().map(|stream| self.losses.finish(stream));
                losses.into_iter().flatten().for_each(|loss| visitor.loss(&loss));
                return None;
            };
            match step {
                Step::Begin(packet) => {
                    let stream = self.reader.stream()?;
                    // Packets need not have times.
                    let begin = packet.begin.or_else(|| self.losses.end()).map(|begin| stream.nanoseconds(begin));
                    self.next = Some(packet);
                    return Some(begin.unwrap_or(i64::MIN));
                }
                Step::Damage(damage) => visitor.damage(&damage),
                Step::Event(_) | Step::End(_) => {}
            }
        }
    }

    /// Passes the next packet to the visitor.
    fn visit(&mut self, visitor: &mut impl TraceVisitor, layouts: &mut KnownLayouts) -> ControlFlow<()> {
        let Some((packet, stream)) = self.next.take().zip(self.reader.stream().cloned()) else {
            return ControlFlow::Continue(());
        };
        for loss in self.losses.before(&stream, &packet) {
            visitor.loss(&loss);
        }
        visitor.packet(&stream, &packet)?;
        let layouts = layouts.of(&packet.class);
        let end = loop {
            self.reader.visit(layouts, |event| visitor.event(event));
            match self.reader.next() {
                Some(Step::Event(event)) => visitor.event(&EventView::from(&event)),
                Some(Step::End(end)) => break Some(end),
                Some(Step::Damage(damage)) => {
                    visitor.damage(&damage);
                    break None;
                }
                Some(Step::Begin(_)) | None => break None,
            }
        };
        self.losses.ended(packet, end);
        ControlFlow::Continue(())
    }
}

impl Trace {
    /// Passes everything in the traces to a visitor, packet by packet, in the order of the packets' begin times. Events of different packets are not
    /// merged. Returns the number of packets without a checksum, as
    /// [`Items::unchecked`](crate::Items::unchecked) counts them.
    ///
    /// Keeps a window of each stream in memory, as [`Trace::items`] does. `progress` is called after each packet with the bytes of the packets
    /// visited so far, and the total.
    pub fn visit_packets(&self, visitor: &mut impl TraceVisitor, progress: &mut dyn FnMut(u64, u64)) -> u64 {
        let Streams { all, damage, .. } = self.streams_since(i64::MIN);
        for damage in &damage {
            visitor.damage(damage);
        }
        let (mut done, total) = (0, all.iter().map(|stream| stream.reader.size()).sum());
        let (mut cursors, mut heap, mut layouts) =
            (Vec::new(), BinaryHeap::new(), KnownLayouts::new(ClassLayouts::of_scalars));
        for (index, TraceStream { reader, begin, before }) in all.into_iter().enumerate() {
            heap.push(Reverse((begin, index)));
            cursors.push(Cursor { reader, losses: LossFinder::new(begin, before), next: None });
        }
        while let Some(Reverse((_, index))) = heap.pop() {
            let cursor = &mut cursors[index];
            // A cursor that has not started is put back at the time of its first packet.
            if let Some(packet) = cursor.next.clone() {
                if cursor.visit(visitor, &mut layouts).is_break() {
                    break;
                }
                done += packet.size();
                progress(done.min(total), total);
            }
            if let Some(begin) = cursor.advance(visitor) {
                heap.push(Reverse((begin, index)));
            }
        }
        cursors.iter().map(|cursor| cursor.reader.unchecked()).sum()
    }
}
