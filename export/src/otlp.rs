//! OpenTelemetry spans: OTLP in files.

mod proto;

use std::collections::BTreeMap;
use std::io::{self, Write};

use prost::Message;
use tracepoint_reader::{Damage, Event, StructValue, Value, json};

use crate::format::{Format, LossReport, Needs, Span, Summary};
use crate::plain::{self, Plain};
use crate::sources::{Process, Sources, ThreadId};
use proto::{
    Any, AnyValue, ArrayValue, ERROR, INTERNAL, InstrumentationScope, KeyValue, KeyValueList, Resource, ResourceSpans,
    ScopeSpans, Status, TracesData,
};

/// Maximum number of events in a span; further ones are counted, as by the SDKs of OpenTelemetry.
const EVENTS_OF_SPAN: usize = 128;
/// Number of spans and events after which a request is written.
const BATCH: usize = 1024;

/// The encoding of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Encoding {
    JsonLines,
    Protobuf,
}

/// Writes spans for OpenTelemetry, in requests of about 1,024 spans and events.
///
/// A process is a resource. A chain of parents is a trace, whose id combines the ids of the recorded trace and of the [root](Span::root). A span with
/// a guessed parent has the attribute `tracepoint.parent_guessed`. Other events become events of the span that contains them; if they do not name the
/// span, they have the attribute `tracepoint.span_guessed`. Events outside of all spans are omitted, and counted in [`Summary::outside`]. A loss is a
/// span `lost events`.
#[derive(Debug)]
pub struct Otlp<W: Write> {
    out: W,
    encoding: Encoding,
    /// By process.
    spans: BTreeMap<u32, Vec<proto::Span>>,
    waiting: usize,
    losses: u64,
}

impl<W: Write> Otlp<W> {
    /// Creates a writer of JSON lines, the OTLP file format: each line is a request.
    pub fn json_lines(out: W) -> Self {
        Self::new(out, Encoding::JsonLines)
    }

    /// Creates a writer of protobuf: each request is an `ExportTraceServiceRequest`, preceded by its length as a varint.
    pub fn protobuf(out: W) -> Self {
        Self::new(out, Encoding::Protobuf)
    }

    fn new(out: W, encoding: Encoding) -> Self {
        Self { out, encoding, spans: BTreeMap::new(), waiting: 0, losses: 0 }
    }

    fn push(&mut self, process: u32, span: proto::Span, sources: &Sources) -> io::Result<()> {
        self.waiting += 1 + span.events.len();
        self.spans.entry(process).or_default().push(span);
        if self.waiting >= BATCH { self.write(sources) } else { Ok(()) }
    }

    fn write(&mut self, sources: &Sources) -> io::Result<()> {
        self.waiting = 0;
        let scope =
            InstrumentationScope { name: "tracepoint".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() };
        let of_process = |(process, spans)| ResourceSpans {
            resource: Some(resource(sources.process(process))),
            scope_spans: vec![ScopeSpans { scope: Some(scope.clone()), spans }],
        };
        let request =
            TracesData { resource_spans: std::mem::take(&mut self.spans).into_iter().map(of_process).collect() };
        match self.encoding {
            _ if request.resource_spans.is_empty() => Ok(()),
            Encoding::JsonLines => {
                json::to_writer(&mut self.out, &request)?;
                self.out.write_all(b"\n")
            }
            Encoding::Protobuf => self.out.write_all(&request.encode_length_delimited_to_vec()),
        }
    }
}

/// Converts a time to OTLP.
fn unix(time_ns: i64) -> u64 {
    u64::try_from(time_ns).unwrap_or(0)
}

/// The trace id of the spans below this root.
fn trace_id(process: &Process, root: u64) -> Vec<u8> {
    let recorded = u128::from_be_bytes(process.trace.unwrap_or_default()) ^ u128::from(process.pid.unwrap_or(0)) << 64;
    (recorded ^ u128::from(root)).to_be_bytes().to_vec()
}

fn attribute(key: &str, value: Any) -> KeyValue {
    KeyValue { key: key.to_owned(), value: Some(AnyValue { value: Some(value) }) }
}

fn resource(process: &Process) -> Resource {
    let texts = [("service.name", &process.program), ("host.name", &process.host)];
    let texts = texts.into_iter().filter_map(|(key, text)| Some(attribute(key, Any::Text(text.clone()?))));
    let pid = process.pid.map(|pid| attribute("process.pid", Any::Int(pid.cast_signed())));
    Resource { attributes: texts.chain(pid).collect() }
}

fn any(value: &Value) -> AnyValue {
    let value = match Plain::from(value) {
        Plain::None => None,
        Plain::Bool(truth) => Some(Any::Bool(truth)),
        Plain::Unsigned(number) => Some(i64::try_from(number).map_or_else(|_| Any::Text(number.to_string()), Any::Int)),
        Plain::Signed(number) => Some(Any::Int(number)),
        Plain::Float(number) => Some(Any::Float(number)),
        Plain::Text(text) => Some(Any::Text(text.into_owned())),
        Plain::Array(values) => Some(Any::Array(ArrayValue { values: values.iter().map(any).collect() })),
        Plain::Struct(members) => Some(Any::Struct(KeyValueList { values: attributes(members.iter()) })),
        Plain::Variant(option, value) => Some(Any::Struct(KeyValueList { values: attributes([(option, value)]) })),
    };
    AnyValue { value }
}

/// Fields of span events that OTLP represents by dedicated fields.
const OF_SPAN: [&str; 3] = ["span_id", "parent_id", "duration_ns"];

fn attributes<'a>(fields: impl IntoIterator<Item = (&'a str, &'a Value)>) -> Vec<KeyValue> {
    fields.into_iter().map(|(name, value)| KeyValue { key: name.to_owned(), value: Some(any(value)) }).collect()
}

/// Converts an event of a span. An event that does not name the span was assigned to it by time.
fn event(event: &Event) -> proto::Event {
    let (time_unix_nano, name) = (unix(event.time_ns), event.name().to_owned());
    let is_named = event.fields.as_ref().is_some_and(|fields| fields.get("span_id").is_some());
    let guessed = (!is_named).then(|| attribute("tracepoint.span_guessed", Any::Bool(true)));
    let attributes = attributes(plain::fields(event)).into_iter().chain(guessed).collect();
    proto::Event { time_unix_nano, name, attributes }
}

/// The attributes of a thread, named by the conventions of OpenTelemetry.
fn thread_attributes(id: ThreadId, sources: &Sources) -> impl Iterator<Item = KeyValue> {
    let thread = sources.thread(id);
    let tid = thread.tid.map(|tid| attribute("thread.id", Any::Int(tid.cast_signed())));
    let name = thread.name.clone().map(|name| attribute("thread.name", Any::Text(name)));
    tid.into_iter().chain(name)
}

/// The status of a span that ended with an error or a panic.
fn status(span: &Span<'_>) -> Option<Status> {
    let outcome = span.end_event()?.fields.as_ref().and_then(|fields: &StructValue| fields.get("outcome"))?;
    match Plain::from(outcome) {
        Plain::Text(outcome) if ["error", "panicked"].contains(&&*outcome) => {
            Some(Status { message: outcome.into_owned(), code: ERROR })
        }
        _ => None,
    }
}

impl<W: Write> Format for Otlp<W> {
    fn needs(&self) -> Needs {
        Needs { inside: EVENTS_OF_SPAN, ..Needs::SPANS }
    }

    fn event(&mut self, _event: &Event, _thread: ThreadId, _sources: &Sources) -> io::Result<()> {
        Ok(())
    }

    fn span(&mut self, span: &Span<'_>, sources: &Sources) -> io::Result<()> {
        let process = sources.process_of(span.thread);
        let mut all = attributes(plain::span_fields(span).filter(|(name, _)| !OF_SPAN.contains(name)));
        all.extend(thread_attributes(span.thread, sources));
        all.extend(span.parent_is_guessed.then(|| attribute("tracepoint.parent_guessed", Any::Bool(true))));
        all.extend(plain::missing(span).map(|missing| attribute("tracepoint.missing", Any::Text(missing.to_owned()))));
        let converted = proto::Span {
            trace_id: trace_id(process, span.root),
            span_id: span.id.to_be_bytes().to_vec(),
            parent_span_id: span.parent.map(|parent| parent.to_be_bytes().to_vec()).unwrap_or_default(),
            name: span.name.to_owned(),
            kind: INTERNAL,
            start_time_unix_nano: unix(span.begin_ns),
            end_time_unix_nano: unix(span.end_ns.unwrap_or(span.last_ns)),
            attributes: all,
            events: span.inside.events.iter().map(event).collect(),
            dropped_events_count: u32::try_from(span.inside.more).unwrap_or(u32::MAX),
            status: status(span),
        };
        self.push(sources.thread(span.thread).process, converted, sources)
    }

    fn loss(&mut self, loss: &LossReport<'_>, sources: &Sources) -> io::Result<()> {
        self.losses += 1;
        // Span ids count upwards, so this id cannot occur.
        let id = u64::MAX - self.losses;
        let known = [("lost.events", loss.events), ("lost.packets", loss.packets)];
        let numbers =
            known.into_iter().filter_map(|(key, number)| Some(attribute(key, Any::Int(number?.cast_signed()))));
        let span = proto::Span {
            trace_id: trace_id(sources.process_of(loss.thread), id),
            span_id: id.to_be_bytes().to_vec(),
            parent_span_id: Vec::new(),
            name: "lost events".to_owned(),
            kind: INTERNAL,
            start_time_unix_nano: unix(loss.loss.from_ns),
            end_time_unix_nano: unix(loss.loss.to_ns),
            attributes: numbers.chain(thread_attributes(loss.thread, sources)).collect(),
            events: Vec::new(),
            dropped_events_count: 0,
            status: Some(Status { message: "events were lost".to_owned(), code: ERROR }),
        };
        self.push(sources.thread(loss.thread).process, span, sources)
    }

    fn damage(&mut self, _damage: &Damage) -> io::Result<()> {
        Ok(())
    }

    fn finish(&mut self, _summary: &Summary, sources: &Sources) -> io::Result<()> {
        self.write(sources)?;
        self.out.flush()
    }
}
