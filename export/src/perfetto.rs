//! The protobuf of Perfetto: track events.
//!
//! All packets belong to one sequence, which starts with the clocks and interns names as they occur. A track's descriptor precedes its first event.
//! Perfetto sorts by time, so a slice can be written as a whole when its span ends.

mod names;
mod proto;

use std::collections::HashSet;
use std::io::{self, Write};

use tracepoint_reader::{Damage, Event};

use crate::format::{Format, LossReport, Needs, Span, SpanEnd, Summary, ThreadDetail, ThreadState};
use crate::plain;
use crate::sources::{Sources, ThreadId};
use names::Names;
use proto::{
    AnnotationValue, BOOTTIME, Clock, ClockSnapshot, CounterDescriptor, Data, DebugAnnotation, EventType,
    ProcessDescriptor, REALTIME, ThreadDescriptor, TracePacket, TrackDescriptor, TrackEvent,
};

/// The id of the only sequence.
const SEQUENCE: u32 = 1;
/// `SEQ_INCREMENTAL_STATE_CLEARED`: the table of interned names starts empty.
const NAMES_BEGIN: u32 = 1;
/// `SEQ_NEEDS_INCREMENTAL_STATE`: the packet uses names of earlier packets.
const USES_NAMES: u32 = 2;

/// Kinds of tracks, in the upper bits of their ids.
const PROCESS: u64 = 1 << 60;
const THREAD: u64 = 2 << 60;
const SPAN: u64 = 3 << 60;
const COUNTER: u64 = 4 << 60;
const LOSS: u64 = 5 << 60;
/// The track of the whole trace.
const TRACE: u64 = 6 << 60;
const STATES: u64 = 7 << 60;

/// Writes a Perfetto trace, for <https://ui.perfetto.dev> and `trace_processor`.
///
/// Each process and each of its threads has a track. Spans are slices on their thread's track; spans that do not [nest](Span::nests) have tracks of
/// their own below the process. Other events are instants. A span whose parent began on another thread is the end of a flow. The states
/// of a thread are slices on a track `states` below the thread's. Losses are instants on the track `lost events` of their process. The [`Summary`] is an
/// instant at the end.
#[derive(Debug)]
pub struct Perfetto<W: Write> {
    out: W,
    counters: Vec<String>,
    names: Names,
    /// Tracks with a descriptor. A thread and a process have two entries, without and with their name.
    described: HashSet<(u64, bool)>,
    counter_tracks: Vec<(u64, String)>,
    /// Number of spans with tracks of their own.
    own_tracks: u64,
    has_begun: bool,
    buffer: Vec<u8>,
}

/// Converts a time to Perfetto's format.
fn timestamp(time_ns: i64) -> u64 {
    u64::try_from(time_ns).unwrap_or(0)
}

impl<W: Write> Perfetto<W> {
    /// Creates a writer. `out` should be buffered.
    pub fn new(out: W) -> Self {
        Self {
            out,
            counters: Vec::new(),
            names: Names::default(),
            described: HashSet::new(),
            counter_tracks: Vec::new(),
            own_tracks: 0,
            has_begun: false,
            buffer: Vec::new(),
        }
    }

    /// Also draws the numeric fields with these names as counters.
    #[must_use]
    pub fn counters(mut self, fields: Vec<String>) -> Self {
        self.counters = fields;
        self
    }

    fn packet(&mut self, timestamp: Option<u64>, data: Data) -> io::Result<()> {
        let sequence_flags = if self.has_begun { USES_NAMES } else { NAMES_BEGIN };
        let interned_data = self.names.take_new();
        self.has_begun = true;
        let packet = TracePacket {
            timestamp,
            trusted_packet_sequence_id: SEQUENCE,
            sequence_flags,
            interned_data,
            data: Some(data),
        };
        // `Trace.packet`, field 1.
        self.buffer.clear();
        prost::encoding::message::encode(1, &packet, &mut self.buffer);
        self.out.write_all(&self.buffer)
    }

    /// Writes the first packet, which defines that times count from the epoch.
    fn head(&mut self, time_ns: i64) -> io::Result<()> {
        if self.has_begun {
            return Ok(());
        }
        let timestamp = timestamp(time_ns);
        let clock = |clock_id| Clock { clock_id, timestamp };
        let clocks = vec![clock(BOOTTIME), clock(REALTIME)];
        let snapshot = ClockSnapshot { clocks, primary_trace_clock: BOOTTIME.cast_signed() };
        self.packet(Some(timestamp), Data::ClockSnapshot(snapshot))
    }

    fn describe(&mut self, descriptor: TrackDescriptor) -> io::Result<()> {
        self.packet(None, Data::TrackDescriptor(descriptor))
    }

    fn process_track(&mut self, thread: ThreadId, sources: &Sources) -> io::Result<u64> {
        let process = sources.process_of(thread);
        let uuid = PROCESS | process_number(thread, sources);
        let is_named = process.program.is_some();
        if !self.described.contains(&(uuid, true)) && self.described.insert((uuid, is_named)) {
            let descriptor = if let Some(pid) = process.shown_pid {
                let (pid, process_name) = (pid.cast_signed(), process.program.clone());
                TrackDescriptor { process: Some(ProcessDescriptor { pid, process_name }), ..TrackDescriptor::default() }
            } else {
                let name = process.program.clone().or_else(|| process.host.clone());
                TrackDescriptor { name: name.or_else(|| Some("no process".to_owned())), ..TrackDescriptor::default() }
            };
            self.describe(TrackDescriptor { uuid, ..descriptor })?;
        }
        Ok(uuid)
    }

    /// The track of a thread; the track of its process, if the thread or the process id is unknown.
    fn thread_track(&mut self, id: ThreadId, sources: &Sources) -> io::Result<u64> {
        self.named_thread_track(id, sources.thread(id).name.as_deref(), sources)
    }

    fn named_thread_track(&mut self, id: ThreadId, name: Option<&str>, sources: &Sources) -> io::Result<u64> {
        let parent = self.process_track(id, sources)?;
        let Some((pid, tid)) = thread_number(id, sources) else { return Ok(parent) };
        let uuid = THREAD | u64::from(pid) << 32 | tid;
        if !self.described.contains(&(uuid, true)) && self.described.insert((uuid, name.is_some())) {
            let thread_name = name.map(str::to_owned);
            let thread = Some(ThreadDescriptor { pid: pid.cast_signed(), tid: tid.cast_signed(), thread_name });
            self.describe(TrackDescriptor { uuid, thread, parent_uuid: Some(parent), ..TrackDescriptor::default() })?;
        }
        Ok(uuid)
    }

    /// The track of the states of a thread; `None` if the thread or the process id is unknown.
    fn states_track(&mut self, state: &ThreadState<'_>, sources: &Sources) -> io::Result<Option<u64>> {
        let Some((pid, tid)) = thread_number(state.thread, sources) else { return Ok(None) };
        let name = sources.thread(state.thread).name.as_deref().or(state.thread_name);
        let parent_uuid = Some(self.named_thread_track(state.thread, name, sources)?);
        let uuid = STATES | u64::from(pid) << 32 | tid;
        if self.described.insert((uuid, true)) {
            let name = Some("states".to_owned());
            self.describe(TrackDescriptor { uuid, name, parent_uuid, ..TrackDescriptor::default() })?;
        }
        Ok(Some(uuid))
    }

    /// A track for one span.
    fn own_track(&mut self, span: &Span<'_>, sources: &Sources) -> io::Result<u64> {
        let parent_uuid = Some(self.process_track(span.thread, sources)?);
        self.own_tracks += 1;
        let (uuid, name) = (SPAN | self.own_tracks, Some(span.name.to_owned()));
        self.describe(TrackDescriptor { uuid, name, parent_uuid, ..TrackDescriptor::default() })?;
        Ok(uuid)
    }

    fn counter_track(&mut self, name: String, thread: ThreadId, sources: &Sources) -> io::Result<u64> {
        let parent = self.process_track(thread, sources)?;
        let key = (parent, name);
        if let Some(index) = self.counter_tracks.iter().position(|known| *known == key) {
            return Ok(COUNTER | index as u64);
        }
        let uuid = COUNTER | self.counter_tracks.len() as u64;
        let (counter, name) = (Some(CounterDescriptor {}), Some(key.1.clone()));
        self.counter_tracks.push(key);
        self.describe(TrackDescriptor {
            uuid,
            name,
            parent_uuid: Some(parent),
            counter,
            ..TrackDescriptor::default()
        })?;
        Ok(uuid)
    }

    /// Creates an event with a name.
    fn track_event(&mut self, kind: EventType, name: &str, category: &str, track_uuid: u64) -> TrackEvent {
        TrackEvent {
            r#type: kind as i32,
            name_iid: Some(self.names.event(name)),
            category_iids: vec![self.names.category(category)],
            track_uuid,
            ..TrackEvent::default()
        }
    }

    /// Writes an instant on a track whose descriptor consists of its name.
    fn instant(&mut self, track: TrackDescriptor, time_ns: i64, annotations: &[(&str, u64)]) -> io::Result<()> {
        self.head(time_ns)?;
        let (uuid, name) = (track.uuid, track.name.clone().unwrap_or_default());
        if self.described.insert((uuid, true)) {
            self.describe(track)?;
        }
        let mut event = self.track_event(EventType::Instant, &name, "tracepoint", uuid);
        let annotation = |(name, number): &(&str, u64)| self.names.annotation(name, AnnotationValue::Unsigned(*number));
        event.debug_annotations = annotations.iter().map(annotation).collect();
        self.packet(Some(timestamp(time_ns)), Data::TrackEvent(event))
    }
}

/// A number of at most 33 bits for a process: its displayed id, or a larger number.
fn process_number(thread: ThreadId, sources: &Sources) -> u64 {
    let unknown = || 1 << 32 | u64::from(sources.thread(thread).process);
    sources.process_of(thread).shown_pid.map_or_else(unknown, u64::from)
}

/// The displayed ids of a thread and its process, if they are known.
fn thread_number(id: ThreadId, sources: &Sources) -> Option<(u32, u64)> {
    let tid = sources.thread(id).tid? & u64::from(u32::MAX >> 1);
    Some((sources.process_of(id).shown_pid?, tid))
}

/// The id of a flow to a child span, derived from the span's id and its process.
fn flow(thread: ThreadId, child: u64, sources: &Sources) -> u64 {
    process_number(thread, sources).rotate_left(40) ^ child
}

impl<W: Write> Format for Perfetto<W> {
    fn needs(&self) -> Needs {
        Needs { threads: ThreadDetail::States, ..Needs::SLICES }
    }

    fn begin(&mut self, first_ns: i64) -> io::Result<()> {
        self.head(first_ns)
    }

    fn event(&mut self, event: &Event, thread: ThreadId, sources: &Sources) -> io::Result<()> {
        let track = self.thread_track(thread, sources)?;
        let mut instant = self.track_event(EventType::Instant, event.name(), plain::provider(event.name()), track);
        instant.debug_annotations = plain::fields(event).map(|(name, value)| self.names.field(name, value)).collect();
        let time = Some(timestamp(event.time_ns));
        self.packet(time, Data::TrackEvent(instant))?;
        let counters: Vec<_> = plain::counters(event, &self.counters).collect();
        for (name, value) in counters {
            let track_uuid = self.counter_track(name, thread, sources)?;
            let (r#type, double_counter_value) = (EventType::Counter as i32, Some(value));
            let counter = TrackEvent { r#type, track_uuid, double_counter_value, ..TrackEvent::default() };
            self.packet(time, Data::TrackEvent(counter))?;
        }
        Ok(())
    }

    fn span(&mut self, span: &Span<'_>, sources: &Sources) -> io::Result<()> {
        let track = if span.nests { self.thread_track(span.thread, sources)? } else { self.own_track(span, sources)? };
        let mut begin = self.track_event(EventType::SliceBegin, span.name, plain::provider(span.name), track);
        let fields = plain::span_fields(span).map(|(name, value)| self.names.field(name, value));
        begin.debug_annotations = fields.collect::<Vec<DebugAnnotation>>();
        if let Some(missing) = plain::missing(span) {
            begin.debug_annotations.push(self.names.annotation("missing", AnnotationValue::Text(missing.to_owned())));
        }
        begin.flow_ids = span.remote_children.iter().map(|child| flow(span.thread, *child, sources)).collect();
        let from_parent = span.parent_thread.map(|_| flow(span.thread, span.id, sources));
        begin.terminating_flow_ids = from_parent.into_iter().collect();
        self.packet(Some(timestamp(span.begin_ns)), Data::TrackEvent(begin))?;
        if let (SpanEnd::Ended(..), Some(end_ns)) = (span.end, span.end_ns) {
            let r#type = EventType::SliceEnd as i32;
            let end = TrackEvent { r#type, track_uuid: track, ..TrackEvent::default() };
            self.packet(Some(timestamp(end_ns)), Data::TrackEvent(end))?;
        }
        Ok(())
    }

    fn thread_state(&mut self, state: &ThreadState<'_>, sources: &Sources) -> io::Result<()> {
        let Some(track) = self.states_track(state, sources)? else { return Ok(()) };
        let mut begin = self.track_event(EventType::SliceBegin, state.cause.name(), "thread state", track);
        for (name, value) in [("call", state.call), ("woken_by", state.woken_by)] {
            let annotation = value.map(|text| self.names.annotation(name, AnnotationValue::Text(text.to_owned())));
            begin.debug_annotations.extend(annotation);
        }
        self.packet(Some(timestamp(state.begin_ns)), Data::TrackEvent(begin))?;
        let end = TrackEvent { r#type: EventType::SliceEnd as i32, track_uuid: track, ..TrackEvent::default() };
        self.packet(Some(timestamp(state.end_ns)), Data::TrackEvent(end))
    }

    fn loss(&mut self, loss: &LossReport<'_>, sources: &Sources) -> io::Result<()> {
        let parent_uuid = Some(self.process_track(loss.thread, sources)?);
        let uuid = LOSS | process_number(loss.thread, sources);
        let track =
            TrackDescriptor { uuid, name: Some("lost events".to_owned()), parent_uuid, ..TrackDescriptor::default() };
        let known = [("events", loss.events), ("packets", loss.packets)];
        let mut annotations: Vec<_> = known.into_iter().filter_map(|(name, number)| Some((name, number?))).collect();
        annotations.push(("since_ns", timestamp(loss.loss.from_ns)));
        annotations.extend(sources.thread(loss.thread).tid.map(|tid| ("tid", tid)));
        self.instant(track, loss.loss.to_ns, &annotations)
    }

    fn damage(&mut self, _damage: &Damage) -> io::Result<()> {
        // Damage has no time. The summary has the count.
        Ok(())
    }

    fn finish(&mut self, summary: &Summary, _sources: &Sources) -> io::Result<()> {
        let track =
            TrackDescriptor { uuid: TRACE, name: Some("tracepoint export".to_owned()), ..TrackDescriptor::default() };
        let Summary { events, others, lost_events, losses_of_unknown_size, damage, range, .. } = summary;
        let annotations = [
            ("events", *events),
            ("others", *others),
            ("spans_closed", summary.spans_closed),
            ("spans_open", summary.spans_open),
            ("spans_forgotten", summary.spans_forgotten),
            ("spans_without_begin", summary.spans_without_begin),
            ("lost_events", *lost_events),
            ("losses_of_unknown_size", *losses_of_unknown_size),
            ("thread_states", summary.thread_states),
            ("damage", *damage),
        ];
        self.instant(track, range.map_or(0, |(_, last)| last), &annotations)?;
        self.out.flush()
    }
}
