//! Reads a stream packet by packet, from its files or from packets that arrive.

mod scan;
mod split;
mod units;

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::checked_packet::{self, DamagedPacket};
use crate::decode::{Fault, State};
use crate::dt::{DtStream, DtTrace, SlotsWindow};
use crate::event::{Event, Stream};
use crate::headers::{Headers, cut};
use crate::loss::Damage;
use crate::metadata::Metadata;
use crate::packet::{Body, Packet};
use crate::source::{FedWindow, FileWindow, Source};
use crate::window::Window;
use split::Extent;
pub(crate) use units::Unit;

/// A step in the reading of a stream.
#[derive(Debug)]
#[non_exhaustive]
pub enum Step {
    /// A packet begins.
    Begin(Arc<Packet>),
    /// An event of that packet.
    Event(Event),
    /// The packet has no more events.
    End(PacketEnd),
    /// A packet is damaged and left out. This is the last step if no further packet can be found.
    Damage(Damage),
}

/// The end of a packet.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct PacketEnd {
    /// The number of its events.
    pub events: u64,
    /// Time of its end, in cycles. If the packet was never closed (its end is 0, or before the last event), the time of the last event.
    pub end: u64,
}

/// Reads the packets and events of one stream. Memory is bounded by one packet header, one event and a window.
///
/// Iterating returns [`Step`]s.
#[derive(Clone, Debug)]
pub struct StreamReader {
    metadata: Metadata,
    inputs: VecDeque<Input>,
    state: State,
    stream: Option<Arc<Stream>>,
    phase: Phase,
    /// Number of packets before this position in the file.
    number: u64,
    unchecked: u64,
    /// The part of the stream to read.
    extent: Extent,
}

/// A part of a stream.
#[derive(Clone, Debug)]
enum Input {
    /// A file, which is opened when reading reaches it.
    File(PathBuf),
    /// Slots of a dt file, and a name for messages.
    Slots(PathBuf, SlotsWindow),
}

#[derive(Clone, Debug)]
enum Phase {
    /// Before the next file.
    File,
    /// Before the packet at this offset.
    Packet(PathBuf, Window, u64),
    /// Among the events of a packet.
    Events(PathBuf, Window, Arc<Packet>, Body, u64),
    /// After the last step.
    Done,
}

impl StreamReader {
    /// Reads one stream file. Nothing is opened before the first step.
    pub fn new(metadata: &Metadata, file: &Path) -> Self {
        Self::of_files(metadata, VecDeque::from([file.to_owned()]))
    }

    /// Reads consecutive files of one stream.
    pub(crate) fn of_files(metadata: &Metadata, files: VecDeque<PathBuf>) -> Self {
        Self::of_inputs(metadata, files.into_iter().map(Input::File).collect())
    }

    /// Reads a stream of a dt file, whose begin time, in nanoseconds since the epoch, it returns as well.
    pub(crate) fn of_dt(trace: &DtTrace, stream: &DtStream) -> (Self, i64) {
        let (metadata, file) = (trace.metadata(), trace.path().join(&stream.name));
        let reader = Self::of_inputs(metadata, VecDeque::from([Input::Slots(file.clone(), trace.window(stream))]));
        let (class, instance) = (Arc::clone(&stream.class), stream.instance);
        let begin = Stream { metadata: metadata.clone(), class, instance, file }.nanoseconds(stream.begin);
        (reader, begin)
    }

    /// A stream that has no packet to read.
    pub(crate) fn of_missing(stream: Stream) -> Self {
        let reader = Self::of_inputs(&stream.metadata, VecDeque::new());
        Self { stream: Some(Arc::new(stream)), ..reader }
    }

    /// Reads packets that are [fed](Self::feed) to it; messages call the stream `name`. Between them there is no step. A
    /// damaged packet does not end the reading: the next one is read.
    pub(crate) fn fed(metadata: &Metadata, name: PathBuf) -> Self {
        let phase = Phase::Packet(name, Window::Fed(FedWindow::default()), 0);
        Self { phase, ..Self::of_inputs(metadata, VecDeque::new()) }
    }

    /// Adds the next packets, complete, to a stream that has no step left.
    pub(crate) fn feed(&mut self, bytes: Vec<u8>) {
        if let Phase::Packet(_, Window::Fed(window), _) = &mut self.phase {
            window.feed(bytes);
        }
    }

    /// Skips the packets that end before `since`, in nanoseconds since the epoch, by their headers. Called before the first step.
    /// Returns the last of them. Packets of dt files are not skipped.
    pub(crate) fn pass_before(&mut self, since: i64) -> Option<Packet> {
        let mut last = None;
        while let Some(Input::File(file)) = self.inputs.front() {
            let metadata = &self.metadata;
            let mut headers = Headers::open(metadata, file, 0, self.state.clock)?;
            let (mut offset, mut number) = (0, 0);
            for packet in headers.by_ref() {
                if packet.end.is_none_or(|end| metadata.nanoseconds(&packet.class, end) >= since) {
                    break;
                }
                (offset, number, self.state.clock) = (packet.offset + packet.size(), number + 1, packet.end?);
                last = Some(packet);
            }
            let window = FileWindow::open(file).ok()?;
            if offset < window.length() {
                self.phase = Phase::Packet(file.clone(), Window::File(window), offset);
                self.number = number;
                self.inputs.pop_front();
                break;
            }
            self.inputs.pop_front();
        }
        last
    }

    /// Sets extended metadata for the packets fed from now on.
    pub(crate) fn set_metadata(&mut self, metadata: &Metadata) {
        if self.metadata.is_same(metadata) {
            return;
        }
        self.metadata = metadata.clone();
        self.state = self.state.with_slots(metadata.slots());
        let known = self.stream.take();
        self.stream = known.and_then(|stream| {
            let class = Arc::clone(metadata.stream(stream.class.id)?);
            Some(Arc::new(Stream { metadata: metadata.clone(), class, ..Stream::clone(&stream) }))
        });
    }

    fn of_inputs(metadata: &Metadata, inputs: VecDeque<Input>) -> Self {
        Self {
            metadata: metadata.clone(),
            inputs,
            state: State::new(metadata.slots()),
            stream: None,
            phase: Phase::File,
            number: 0,
            unchecked: 0,
            extent: Extent::default(),
        }
    }

    /// The stream; `None` before its first packet.
    pub fn stream(&self) -> Option<&Arc<Stream>> {
        self.stream.as_ref()
    }

    /// Number of packets so far without a checksum, although the tracer's packets have a place for it.
    pub fn unchecked(&self) -> u64 {
        self.unchecked
    }

    fn damage(&mut self, file: PathBuf, offset: u64, reason: String) -> Step {
        self.phase = Phase::Done;
        Step::Damage(Damage { file, offset, reason })
    }

    fn packet(&mut self, file: PathBuf, mut window: Window, offset: u64) -> Option<Step> {
        if offset >= window.length() {
            self.phase = Phase::File;
            self.extent.reach_end();
            return None;
        }
        self.number += 1;
        let packet = match checked_packet::open(&mut window, &self.metadata, &mut self.state, offset, self.number) {
            Ok(packet) => Arc::new(packet),
            Err(DamagedPacket { offset, reason, next, .. }) => {
                let damage = Damage { file: file.clone(), offset, reason };
                self.phase = match next {
                    Some(next) => Phase::Packet(file, window, next),
                    None => after_damage(file, window).unwrap_or(Phase::File),
                };
                return Some(Step::Damage(damage));
            }
        };
        self.unchecked += u64::from(packet.has_checksum == Some(false));
        let stream = self.stream.get_or_insert_with(|| {
            Arc::new(Stream {
                metadata: self.metadata.clone(),
                class: Arc::clone(&packet.class),
                instance: packet.instance,
                file: file.clone(),
            })
        });
        if (stream.class.id, stream.instance) != (packet.class.id, packet.instance) {
            let reason = "a packet of another stream is in this file".to_owned();
            self.phase = after_damage(file.clone(), window).unwrap_or(Phase::Done);
            return Some(Step::Damage(Damage { file, offset, reason }));
        }
        let body = Body::new(&packet, &window);
        self.phase = Phase::Events(file, window, Arc::clone(&packet), body, 0);
        Some(Step::Begin(packet))
    }

    /// The next event of the packet, read in place: the contents of a phase are not moved for each event. Otherwise the phase that ended, and how.
    fn event(&mut self) -> Result<Event, Option<EventsEnd>> {
        let Phase::Events(_, window, packet, body, events) = &mut self.phase else { return Err(None) };
        // A packet has begun, so the stream is known.
        let Some(stream) = &self.stream else { return Err(None) };
        match body.event(window, &mut self.state, packet, stream) {
            Ok(Some(event)) => {
                *events += 1;
                Ok(event)
            }
            Ok(None) => Err(Some(EventsEnd::Content)),
            Err(fault) => Err(Some(EventsEnd::Fault(fault))),
        }
    }

    /// Continues after the events of a packet.
    fn end_events(
        &mut self,
        file: PathBuf,
        mut window: Window,
        packet: &Packet,
        body: &Body,
        events: u64,
        end: EventsEnd,
    ) -> Option<Step> {
        match end {
            EventsEnd::Content => {
                let last = self.state.clock;
                let end = packet.end.map_or(last, |end| end.max(last));
                self.state.clock = end;
                let next = window.following(packet.offset, packet.size());
                // Beyond the end of the file if a part of the packet is missing, which the next step reports as damage.
                self.phase = Phase::Packet(file, window, next);
                if self.extent.ends_with(self.stream.as_ref()?, packet) {
                    self.phase = Phase::Done;
                }
                Some(Step::End(PacketEnd { events, end }))
            }
            EventsEnd::Fault(fault) => {
                let damage = body.damage(fault, packet, &file);
                self.phase = after_damage(file, window).unwrap_or(Phase::Done);
                Some(Step::Damage(damage))
            }
        }
    }
}

/// The end of a packet's events.
enum EventsEnd {
    Content,
    Fault(Fault),
}

/// The phase after damage that hides all further packets: waits for packets that are still to be fed.
fn after_damage(file: PathBuf, window: Window) -> Option<Phase> {
    let is_fed = matches!(window, Window::Fed(_));
    let end = window.length();
    is_fed.then(|| Phase::Packet(file, window, end))
}

impl Iterator for StreamReader {
    type Item = Step;

    fn next(&mut self) -> Option<Step> {
        loop {
            let end = match self.event() {
                Ok(event) => return Some(Step::Event(event)),
                Err(end) => end,
            };
            let step = match std::mem::replace(&mut self.phase, Phase::Done) {
                Phase::Done => return None,
                Phase::File => {
                    let opened = match self.inputs.pop_front()? {
                        Input::File(file) => {
                            FileWindow::open(&file).map(Window::File).map_err(|e| (file.clone(), e)).map(|w| (file, w))
                        }
                        Input::Slots(name, slots) => Ok((name, Window::Slots(slots))),
                    };
                    match opened {
                        Ok((file, mut window)) => {
                            self.number = 0;
                            let first = window.first();
                            self.phase = Phase::Packet(file, window, first);
                            None
                        }
                        Err((file, error)) => Some(self.damage(file, 0, format!("cannot be opened: {error}"))),
                    }
                }
                // The padding of the last packet may have been omitted.
                Phase::Packet(file, window @ Window::Fed(_), offset) if offset >= window.length() => {
                    let end = window.length();
                    self.phase = Phase::Packet(file, window, end);
                    return None;
                }
                Phase::Packet(_, _, offset) if self.extent.ends_at(offset) => return None,
                Phase::Packet(file, window, offset) if offset > window.length() => {
                    let length = window.length();
                    Some(self.damage(file, length, cut(offset - length)))
                }
                Phase::Packet(file, window, offset) => self.packet(file, window, offset),
                Phase::Events(file, window, packet, body, events) => {
                    self.end_events(file, window, &packet, &body, events, end?)
                }
            };
            if step.is_some() {
                return step;
            }
        }
    }
}
