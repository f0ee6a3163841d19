//! The parts of a stream that are read separately, found by the headers of packets.
//!
//! A packet is a unit if its header has the full time of its begin, and its size leads to another packet of the stream or to the end of the
//! file. After the last such packet, the rest of a file is one unit, which is read sequentially. A damaged
//! header therefore hides nothing: everything that can be found after it is in the same unit.

use std::path::Path;
use std::sync::Arc;

use super::scan::MAX_HELD;
use super::split::{Extent, HEAD, has_own_times};
use super::{Input, Phase, StreamReader};
use crate::decode::State;
use crate::event::Stream;
use crate::headers::Headers;
use crate::packet::Packet;
use crate::source::{FileWindow, Source};
use crate::window::Window;

/// A part of a stream that is read separately. Times are in cycles of the stream's clock; `None` if unknown.
#[derive(Clone, Debug)]
pub(crate) struct Unit {
    pub(crate) begin: Option<u64>,
    pub(crate) end: Option<u64>,
    /// Size in bytes.
    pub(crate) size: u64,
    place: Place,
}

#[derive(Clone, Copy, Debug)]
enum Place {
    /// A packet of a file: the number of the file, the offset, and the number of packets before it.
    Packet { file: usize, offset: u64, before: u64 },
    /// The rest of a file.
    Rest { file: usize, offset: u64, before: u64 },
    /// A packet of a dt file.
    Slot(usize),
    /// The stream.
    Whole,
}

impl Unit {
    /// True for a packet whose header was read.
    pub(crate) fn is_packet(&self) -> bool {
        matches!(self.place, Place::Packet { .. } | Place::Slot(_))
    }
}

impl StreamReader {
    /// The stream, from its first undamaged packet. Called before the first step, which remains the first.
    pub(crate) fn identify(&self) -> Option<Arc<Stream>> {
        let mut first = self.clone();
        while first.stream.is_none() {
            first.next()?;
        }
        first.stream
    }

    /// The units of a stream. Called before the first step. Reads the header of each packet.
    pub(crate) fn units(&self, stream: &Stream) -> Vec<Unit> {
        let mut units = Vec::new();
        if !has_own_times(&stream.class) {
            units.push(Unit { begin: None, end: None, size: self.size(), place: Place::Whole });
            return units;
        }
        for (number, input) in self.inputs.iter().enumerate() {
            match input {
                Input::File(path) => self.units_of_file(stream, number, path, &mut units),
                Input::Slots(_, slots) => units.extend(slots.parts().iter().enumerate().map(|(index, part)| Unit {
                    begin: Some(part.begin),
                    end: closed(Some(part.begin), part.end),
                    size: part.length,
                    place: Place::Slot(index),
                })),
            }
        }
        units
    }

    fn units_of_file(&self, stream: &Stream, file: usize, path: &Path, units: &mut Vec<Unit>) {
        let rest =
            |offset, before, size| Unit { begin: None, end: None, size, place: Place::Rest { file, offset, before } };
        let Ok(window) = FileWindow::open(path) else {
            units.push(rest(0, 0, 0));
            return;
        };
        let mut headers = Headers::of_window(&self.metadata, window.again(HEAD), 0, 0);
        let (mut before, mut end, first) = (0, 0, units.len());
        let is_same = |packet: &Packet| (packet.class.id, packet.instance) == (stream.class.id, stream.instance);
        for packet in headers.by_ref().take_while(is_same) {
            units.push(Unit {
                begin: packet.begin,
                end: closed(packet.begin, packet.end),
                size: packet.size(),
                place: Place::Packet { file, offset: packet.offset, before },
            });
            (before, end) = (before + 1, packet.offset + packet.size());
        }
        if end < window.length() {
            let last = units.split_off(first.max(units.len().saturating_sub(1))).pop();
            let (offset, before) = match last.map(|unit| unit.place) {
                Some(Place::Packet { offset, before, .. }) => (offset, before),
                _ => (0, 0),
            };
            units.push(rest(offset, before, window.length() - offset));
        }
    }

    /// Makes `reader` read this unit next, and nothing after it. It keeps its window if the unit is in the same file.
    pub(crate) fn go_to(&self, reader: &mut Self, stream: &Arc<Stream>, unit: &Unit) {
        let window = match std::mem::replace(&mut reader.phase, Phase::Done) {
            Phase::Packet(path, Window::File(window), _) => Some((path, window)),
            _ => None,
        };
        let unchecked = reader.unchecked;
        *reader = match unit.place {
            Place::Whole => self.clone(),
            Place::Slot(index) => self.at_slot(index),
            Place::Packet { file, offset, before } => {
                let stop = Some(offset.saturating_add(unit.size));
                Self { number: before, extent: Extent::up_to(stop), ..self.at_offset(file, offset, unit.size, window) }
            }
            Place::Rest { file, offset, before } => {
                Self { number: before, ..self.at_offset(file, offset, unit.size, window) }
            }
        };
        (reader.stream, reader.unchecked) = (Some(Arc::clone(stream)), unchecked);
    }

    /// A reader without input, with a clock that has not started.
    fn of_nothing(&self) -> Self {
        Self { state: State::new(self.metadata.slots()), ..Self::of_inputs(&self.metadata, [].into()) }
    }

    fn at_slot(&self, index: usize) -> Self {
        let slots = self.inputs.iter().find_map(|input| match input {
            Input::Slots(name, slots) => Some(Input::Slots(name.clone(), slots.only(index))),
            Input::File(_) => None,
        });
        Self { inputs: slots.into_iter().collect(), ..self.of_nothing() }
    }

    fn at_offset(&self, file: usize, offset: u64, size: u64, window: Option<(std::path::PathBuf, FileWindow)>) -> Self {
        let Some(input @ Input::File(path)) = self.inputs.get(file) else { return self.of_nothing() };
        let held = size.min(MAX_HELD) as usize;
        let window = match window {
            Some((open, window)) if open == *path => Some(window.resized(held)),
            _ => FileWindow::open(path).ok().map(|window| window.resized(held)),
        };
        match window {
            Some(window) => {
                Self { phase: Phase::Packet(path.clone(), Window::File(window), offset), ..self.of_nothing() }
            }
            // Reading it reports why it cannot be opened.
            None => Self { inputs: [input.clone()].into(), ..self.of_nothing() },
        }
    }
}

/// The end time of a packet; `None` if it was never closed.
fn closed(begin: Option<u64>, end: Option<u64>) -> Option<u64> {
    end.filter(|end| *end > 0 && Some(*end) >= begin)
}
