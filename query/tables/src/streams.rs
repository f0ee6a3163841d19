//! The state of streams while they are read: the number of the next event, the losses before it, and its origin.

use std::path::Path;
use std::sync::Arc;

use tracepoint_reader::account::uuid_text;
use tracepoint_reader::metadata::{EnvValue, Metadata};
use tracepoint_reader::{EventView, LossKind, Packet, Stream, Value};

use crate::layout::{EventOrigin, Layout};
use crate::place::HostSession;
use crate::rows::{RowHead, RowOrigin};

/// A stream that is read packet by packet.
#[derive(Debug)]
pub struct StreamState {
    /// The stream.
    pub stream: Arc<Stream>,
    /// `TRACE/CHANNEL/INSTANCE`, unique among all traces that have a UUID.
    pub name: Arc<str>,
    /// Host and session of its trace.
    pub place: HostSession,
    /// True if the events have times.
    pub has_clock: bool,
    /// The number of the next event.
    pub seq: u64,
    /// Number of events lost before the next one; `None` if unknown.
    pub lost: Option<u64>,
    /// The time of the last event.
    pub last_ns: Option<i64>,
    /// The last day of an event or a loss.
    pub last_day: Option<i64>,
    /// The origin according to the packet.
    packet_origin: Arc<RowOrigin>,
    /// The origin of the last event whose contexts contained one.
    event_origin: Arc<RowOrigin>,
}

/// Host and session of a trace; `path` is its directory or file.
pub(crate) fn place(metadata: &Metadata, path: Option<&Path>) -> HostSession {
    let text = |name: &str| match metadata.env_value(name) {
        Some(EnvValue::String(text)) if !text.is_empty() => Some(text.clone()),
        _ => None,
    };
    let directory = || Some(path?.file_name()?.to_string_lossy().into_owned());
    HostSession { host: text("hostname"), session: text("trace_name").or_else(directory) }
}

/// The process id in a trace's metadata.
pub(crate) fn pid(metadata: &Metadata) -> Option<u32> {
    match metadata.env_value("vpid") {
        Some(EnvValue::Integer(pid)) => u32::try_from(*pid).ok(),
        _ => None,
    }
}

/// The name of a stream of a trace.
pub(crate) fn stream_name(metadata: &Metadata, class: u64, instance: Option<u64>, file: &Path) -> Arc<str> {
    let trace = metadata.uuid().map_or_else(|| "-".to_owned(), uuid_text);
    match instance {
        Some(instance) => format!("{trace}/{class}/{instance}").into(),
        None => format!("{trace}/{class}/{}", file.file_name().unwrap_or_default().to_string_lossy()).into(),
    }
}

impl StreamState {
    /// Creates the state before the first packet.
    pub fn new(stream: &Arc<Stream>) -> Self {
        let name = stream_name(&stream.metadata, stream.class.id, stream.instance, &stream.file);
        let origin = Arc::new(RowOrigin { pid: None, tid: None, thread: None, stream: Arc::clone(&name) });
        Self {
            place: place(&stream.metadata, stream.file.parent()),
            has_clock: stream.clock().is_some(),
            stream: Arc::clone(stream),
            name,
            seq: 0,
            lost: Some(0),
            last_ns: None,
            last_day: None,
            packet_origin: Arc::clone(&origin),
            event_origin: origin,
        }
    }

    /// Updates the state for a new packet.
    pub fn packet(&mut self, packet: &Packet) {
        self.seq = packet.events_before.unwrap_or(self.seq);
        let member = |name: &str| packet.context.as_ref()?.get(name);
        let number = |name: &str| member(name).and_then(Value::as_u64);
        self.packet_origin = Arc::new(RowOrigin {
            pid: number("vpid").or(number("pid")).and_then(|pid| pid.try_into().ok()).or(pid(&self.stream.metadata)),
            tid: number("vtid").or(packet.tid).and_then(|tid| tid.try_into().ok()),
            thread: member("procname").and_then(Value::as_bytes).map(|name| String::from_utf8_lossy(name).into_owned()),
            stream: Arc::clone(&self.name),
        });
    }

    /// Updates the state for an event, and returns the common columns of its row.
    #[inline]
    pub fn event(&mut self, event: &EventView<'_>) -> RowHead {
        let ts = self.has_clock.then(|| event.time_ns());
        let head = RowHead { ts, seq: self.seq, lost_before: self.lost };
        self.seq = self.seq.wrapping_add(1);
        self.lost = Some(0);
        self.last_ns = Some(event.time_ns());
        head
    }

    /// The origin of an event whose contexts have this layout.
    #[inline]
    pub fn origin(&mut self, layout: &Layout, event: &EventView<'_>) -> &Arc<RowOrigin> {
        if layout.has_origin() { self.event_origin(layout.origin(event)) } else { &self.packet_origin }
    }

    /// The origin of an event whose contexts contain one.
    fn event_origin(&mut self, event: EventOrigin<'_>) -> &Arc<RowOrigin> {
        let (packet, last) = (&self.packet_origin, &self.event_origin);
        let pid = event.pid.and_then(|pid| pid.try_into().ok()).or(packet.pid);
        let tid = event.tid.and_then(|tid| tid.try_into().ok()).or(packet.tid);
        let thread = event.thread.map(String::from_utf8_lossy);
        let thread = thread.as_deref().or(packet.thread.as_deref());
        if (pid, tid, thread) != (last.pid, last.tid, last.thread.as_deref()) {
            let thread = thread.map(str::to_owned);
            self.event_origin = Arc::new(RowOrigin { pid, tid, thread, stream: Arc::clone(&self.name) });
        }
        &self.event_origin
    }

    /// Records a loss before the next event. Returns the number of events and packets, as far as known.
    pub fn loss(&mut self, kind: LossKind) -> (Option<u64>, Option<u64>) {
        let (events, packets) = match kind {
            LossKind::Events(events) => (events, None),
            LossKind::Packets { packets, events } => (events, packets),
            _ => (None, None),
        };
        self.lost = self.lost.zip(events).map(|(before, events)| before.saturating_add(events));
        (events, packets)
    }
}
