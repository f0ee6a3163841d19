//! Divides a stream among several readers, at packet boundaries.
//!
//! A packet can be read without its predecessors if its header has the full time of its begin, to which all later times refer. Packet boundaries are
//! known only from headers, which may be wrong. After reading, [`StreamReader::has_met_its_end`] says if a reader arrived at its planned
//! end; only then may another reader's results for the following part be used.

use super::scan::{self, MAX_HELD};
use super::{Input, Phase, StreamReader};
use crate::event::Stream;
use crate::headers::Headers;
use crate::metadata::StreamClass;
use crate::metadata::types::Type;
use crate::packet::Packet;
use crate::record::layout::ClassLayouts;
use crate::source::{FileWindow, Source};
use crate::view::EventView;
use crate::window::Window;

/// Number of bytes of a file read for one header.
pub(super) const HEAD: usize = 1 << 10;

/// The part of a stream that a reader reads.
#[derive(Clone, Debug, Default)]
pub(super) struct Extent {
    /// The offset after its last packet in a file; `None`: up to the end.
    stop: Option<u64>,
    /// Reading ends after the first packet that begins after this time, in nanoseconds since the epoch.
    until: Option<i64>,
    /// True if it arrived at its end, and not at damage that hides the rest.
    met: bool,
}

impl Extent {
    /// Ends at this offset of a file.
    pub(super) fn up_to(stop: Option<u64>) -> Self {
        Self { stop, ..Self::default() }
    }

    /// Notes the end of a file, or of a dt file's packets.
    pub(super) fn reach_end(&mut self) {
        self.met = self.stop.is_none();
    }

    /// True if reading ends at this offset of a file.
    pub(super) fn ends_at(&mut self, offset: u64) -> bool {
        self.met |= self.stop == Some(offset);
        self.stop.is_some_and(|stop| offset >= stop)
    }

    /// True if reading ends after this packet.
    pub(super) fn ends_with(&mut self, stream: &Stream, packet: &Packet) -> bool {
        let ends = self.is_behind(stream, packet);
        self.met |= ends;
        ends
    }

    fn is_behind(&self, stream: &Stream, packet: &Packet) -> bool {
        self.until.is_some_and(|until| packet.begin.is_some_and(|begin| stream.nanoseconds(begin) > until))
    }
}

/// True if packets of this class have the full time of their begin.
pub(super) fn has_own_times(class: &StreamClass) -> bool {
    let mut members = class.packet_context.iter().flat_map(|ty| &ty.fields);
    let begin = members.find(|field| field.name() == "timestamp_begin");
    matches!(begin.map(|field| &field.ty), Some(Type::Integer(ty)) if ty.bits == 64)
}

/// Packets of a file, from their headers.
struct Walk {
    /// The offset after them.
    end: u64,
    packets: u64,
    /// True if no further ones are wanted.
    is_last: bool,
}

impl StreamReader {
    /// Ends reading after the first packet that begins after this time, in nanoseconds since the epoch.
    pub(crate) fn set_until(&mut self, until: Option<i64>) {
        self.extent.until = until;
    }

    /// True if it arrived at its end, and not at damage that hides the rest.
    pub(crate) fn has_met_its_end(&self) -> bool {
        self.extent.met
    }

    /// The size of its files or slots in bytes.
    pub(crate) fn size(&self) -> u64 {
        let input = |input: &Input| match input {
            Input::File(file) => file.metadata().map_or(0, |metadata| metadata.len()),
            Input::Slots(_, slots) => slots.size(),
        };
        let open = match &self.phase {
            Phase::Packet(_, window, offset) => window.length().saturating_sub(*offset),
            _ => 0,
        };
        self.inputs.iter().map(input).sum::<u64>().saturating_add(open)
    }

    /// Splits off a reader of the next packets, about `bytes` bytes; this one continues after them. Called between packets. `None` if there are no
    /// packets, or if the boundary is uncertain.
    pub(crate) fn split(&mut self, bytes: u64) -> Option<Self> {
        if !self.metadata.streams().all(|class| has_own_times(class)) {
            return None;
        }
        if self.stream.is_none() {
            // A header alone is not reliable.
            let mut first = self.clone();
            while first.stream.is_none() {
                first.next()?;
            }
            self.stream = first.stream;
        }
        let stream = self.stream.clone()?;
        loop {
            match std::mem::replace(&mut self.phase, Phase::Done) {
                Phase::Packet(file, Window::File(window), offset) if offset < window.length() => {
                    let Walk { end, packets, is_last } = self.walk(&stream, &window, offset, bytes);
                    let part = (packets > 0).then(|| {
                        let size = (end - offset).min(MAX_HELD) as usize;
                        let phase = Phase::Packet(file.clone(), Window::File(window.again(size)), offset);
                        let extent = Extent { stop: Some(end), ..self.extent };
                        Self { inputs: [].into(), phase, extent, ..self.clone() }
                    });
                    self.number += packets;
                    if !is_last {
                        self.phase = Phase::Packet(file, Window::File(window), end);
                    }
                    return part;
                }
                Phase::Packet(_, Window::File(window), offset) if offset == window.length() => {}
                Phase::File => {}
                other => {
                    self.phase = other;
                    return None;
                }
            }
            self.phase = Phase::File;
            match self.inputs.front_mut()? {
                Input::File(file) => {
                    let window = FileWindow::open(file).ok()?;
                    self.number = 0;
                    self.phase = Phase::Packet(file.clone(), Window::File(window), 0);
                    self.inputs.pop_front();
                }
                Input::Slots(name, slots) => {
                    let input = Input::Slots(name.clone(), slots.split(bytes)?);
                    return Some(Self { inputs: [input].into(), ..self.clone() });
                }
            }
        }
    }

    fn walk(&self, stream: &Stream, window: &FileWindow, offset: u64, bytes: u64) -> Walk {
        let mut headers = Headers::of_window(&self.metadata, window.again(HEAD), offset, 0);
        let mut walk = Walk { end: offset, packets: 0, is_last: false };
        while walk.end - offset < bytes && !walk.is_last {
            let Some(packet) = headers.next() else { break };
            (walk.end, walk.packets) = (headers.offset(), walk.packets + 1);
            walk.is_last = self.extent.is_behind(stream, &packet);
        }
        walk
    }

    /// Visits the records of the current packet, as long as their layouts are known. The next step is whatever follows them.
    pub(crate) fn visit(&mut self, layouts: &ClassLayouts, each: impl FnMut(&EventView<'_>)) {
        if let (Phase::Events(_, window, packet, body, events), Some(stream)) = (&mut self.phase, &self.stream) {
            *events += scan::visit(window, (packet, body), &mut self.state, stream, layouts, each);
        }
    }
}
