//! The streams of a trace, each with what its next event needs: a number, what was lost before it, and where it is from.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use tracepoint_reader::account::uuid_text;
use tracepoint_reader::metadata::{EnvValue, Metadata};
use tracepoint_reader::{LossKind, Packet, Stream, Value};

use super::partitions::{HostSession, Kind};
use crate::layout::EventOrigin;
use crate::rows::RowOrigin;

/// A kind of event in one stream.
#[derive(Debug)]
pub(super) struct StreamEvent {
    pub(super) kind: Arc<Kind>,
    /// The partition of the last event, and its day.
    pub(super) last: Option<(Option<i64>, usize)>,
    /// How many were stored.
    pub(super) stored: u64,
}

/// A stream.
#[derive(Debug)]
pub(super) struct StreamState {
    pub(super) stream: Arc<Stream>,
    /// `TRACE/CHANNEL/INSTANCE`, unique among all traces that have a UUID.
    pub(super) name: Arc<str>,
    pub(super) place: HostSession,
    pub(super) has_clock: bool,
    /// The number of the next event.
    pub(super) seq: u64,
    /// How many events were lost before the next one; `None` if that is not known.
    pub(super) lost: Option<u64>,
    /// The time of the last event.
    pub(super) last_ns: Option<i64>,
    /// The last day of an event or a loss.
    pub(super) last_day: Option<i64>,
    /// What the packet says.
    pub(super) packet_origin: Arc<RowOrigin>,
    /// What the last event that said more has said.
    event_origin: Arc<RowOrigin>,
    pub(super) events: HashMap<u64, StreamEvent>,
}

/// Host and session of a trace; `path` is its directory or file.
pub(super) fn place(metadata: &Metadata, path: Option<&Path>) -> HostSession {
    let text = |name: &str| match metadata.env_value(name) {
        Some(EnvValue::String(text)) if !text.is_empty() => Some(text.clone()),
        _ => None,
    };
    let directory = || Some(path?.file_name()?.to_string_lossy().into_owned());
    HostSession { host: text("hostname"), session: text("trace_name").or_else(directory) }
}

/// The id of the process of a trace.
pub(super) fn pid(metadata: &Metadata) -> Option<u32> {
    match metadata.env_value("vpid") {
        Some(EnvValue::Integer(pid)) => u32::try_from(*pid).ok(),
        _ => None,
    }
}

/// The name of a stream of a trace.
pub(super) fn stream_name(metadata: &Metadata, class: u64, instance: Option<u64>, file: &Path) -> Arc<str> {
    let trace = metadata.uuid().map_or_else(|| "-".to_owned(), uuid_text);
    match instance {
        Some(instance) => format!("{trace}/{class}/{instance}").into(),
        None => format!("{trace}/{class}/{}", file.file_name().unwrap_or_default().to_string_lossy()).into(),
    }
}

impl StreamState {
    pub(super) fn new(stream: &Arc<Stream>) -> Self {
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
            events: HashMap::new(),
        }
    }

    /// A packet begins.
    pub(super) fn packet(&mut self, packet: &Packet) {
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

    /// Where an event is from that says so itself.
    pub(super) fn event_origin(&mut self, event: EventOrigin<'_>) -> &Arc<RowOrigin> {
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

    /// Something was lost before the next event. Returns how many events and packets, as far as that is known.
    pub(super) fn loss(&mut self, kind: LossKind) -> (Option<u64>, Option<u64>) {
        let (events, packets) = match kind {
            LossKind::Events(events) => (events, None),
            LossKind::Packets { packets, events } => (events, packets),
            _ => (None, None),
        };
        self.lost = self.lost.zip(events).map(|(before, events)| before.saturating_add(events));
        (events, packets)
    }
}
