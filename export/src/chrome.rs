//! The JSON "Trace Event Format" of `chrome://tracing`, which Perfetto and Speedscope can read as well.

use std::collections::HashSet;
use std::io::{self, Write};

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use tracepoint_reader::{Damage, Event, json};

use crate::format::{Format, LossReport, Needs, Span, SpanEnd, Summary, ThreadDetail, ThreadState};
use crate::plain;
use crate::sources::{Sources, ThreadId};

/// Writes one JSON object: `traceEvents`, an array, and `otherData`, with the [`Summary`].
///
/// Times are microseconds since the first item, with three decimals; `otherData.origin_ns` is the time of the first item in nanoseconds since the
/// epoch. Viewers drop negative times, so a span with a missing begin that began before the first item is shown from the first item on, and
/// `before_us` says how much earlier it began. Damage has no time, and is shown at the first item as well. `pid` and `tid` are omitted if unknown.
/// The states of a thread are complete slices of a thread of their own, with a `tid` above all thread ids of Linux.
#[derive(Debug)]
pub struct Chrome<W: Write> {
    out: W,
    counters: Vec<String>,
    has_begun: bool,
    /// The time of the first item that has one.
    origin: Option<i64>,
    /// Processes and threads whose names have been written. A thread has two entries, without and with its own name.
    named: HashSet<(u32, Option<u64>, bool)>,
    has_elements: bool,
}

/// Added to the id of a thread for its states: above the largest thread id of Linux.
const STATES: u64 = 1 << 22;

/// An element of `traceEvents`.
#[derive(Debug, Serialize)]
struct Element<'a, A> {
    ph: &'static str,
    name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    cat: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pid: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tid: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ts: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dur: Option<f64>,
    /// Scope of an instant.
    #[serde(skip_serializing_if = "Option::is_none")]
    s: Option<&'static str>,
    /// The id of an asynchronous span.
    #[serde(skip_serializing_if = "Option::is_none")]
    id2: Option<LocalId>,
    /// Id of a flow.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    /// Binds a flow to the enclosing slice.
    #[serde(skip_serializing_if = "Option::is_none")]
    bp: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    args: Option<A>,
}

/// An id that is unique in its process.
#[derive(Clone, Debug, Serialize)]
struct LocalId {
    local: String,
}

struct EventArgs<'a>(&'a Event);

impl Serialize for EventArgs<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(plain::fields(self.0))
    }
}

struct SpanArgs<'a> {
    span: &'a Span<'a>,
    /// Time by which the span began before the first item.
    before_us: Option<f64>,
}

impl Serialize for SpanArgs<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (name, value) in plain::span_fields(self.span) {
            map.serialize_entry(name, value)?;
        }
        if let Some(missing) = plain::missing(self.span) {
            map.serialize_entry("missing", missing)?;
        }
        if let Some(before) = self.before_us {
            map.serialize_entry("before_us", &before)?;
        }
        map.end()
    }
}

#[derive(Serialize)]
struct Name<'a> {
    name: &'a str,
}

#[derive(Serialize)]
struct Value {
    value: f64,
}

#[derive(Serialize)]
struct SortIndex {
    sort_index: u64,
}

#[derive(Serialize)]
struct StateArgs<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    call: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    woken_by: Option<&'a str>,
}

#[derive(Serialize)]
struct LossArgs {
    events: Option<u64>,
    packets: Option<u64>,
    since_us: f64,
}

#[derive(Serialize)]
struct OtherData<'a> {
    origin_ns: i64,
    #[serde(flatten)]
    summary: &'a Summary,
}

impl<W: Write> Chrome<W> {
    /// Creates a writer. `out` should be buffered.
    pub fn new(out: W) -> Self {
        Self { out, counters: Vec::new(), has_begun: false, origin: None, named: HashSet::new(), has_elements: false }
    }

    /// Also draws the numeric fields with these names as counters.
    #[must_use]
    pub fn counters(mut self, fields: Vec<String>) -> Self {
        self.counters = fields;
        self
    }

    fn element<A: Serialize>(&mut self, element: &Element<'_, A>) -> io::Result<()> {
        self.out.write_all(if std::mem::replace(&mut self.has_elements, true) { b",\n" } else { b"\n" })?;
        Ok(json::to_writer(&mut self.out, element)?)
    }

    fn head(&mut self) -> io::Result<()> {
        if std::mem::replace(&mut self.has_begun, true) {
            return Ok(());
        }
        self.out.write_all(b"{\"displayTimeUnit\":\"ns\",\"traceEvents\":[")
    }

    /// Nanoseconds since the first item; negative if the time is before it.
    fn since_origin(&self, time_ns: i64) -> i64 {
        time_ns.saturating_sub(self.origin.unwrap_or(time_ns))
    }

    /// Microseconds since the first item, at least 0.
    fn time(&mut self, time_ns: i64) -> io::Result<f64> {
        self.head()?;
        Ok(microseconds(self.since_origin(time_ns).max(0)))
    }

    /// An element without times and arguments, for a thread whose name has been written.
    fn of<'a, A: Serialize>(
        &mut self,
        ph: &'static str,
        name: &'a str,
        thread: ThreadId,
        sources: &Sources,
    ) -> io::Result<Element<'a, A>> {
        let (process, thread) = (sources.process_of(thread), sources.thread(thread));
        let (pid, tid) = (process.shown_pid, thread.tid);
        if let Some(shown) = pid {
            let names = [
                ((shown, None, false), "process_name", process.program.as_deref()),
                ((shown, tid, true), "thread_name", thread.name.as_deref().filter(|_| tid.is_some())),
            ];
            for (key, kind, name) in names {
                if let Some(name) = name.filter(|_| !self.named.contains(&key)) {
                    self.element(&Element { ph: "M", name: kind, pid, tid, args: Some(Name { name }), ..none() })?;
                    self.named.insert(key);
                }
            }
        }
        Ok(Element { ph, name, pid, tid, ..none() })
    }

    /// Names the thread of a thread's states, and puts it next to the thread.
    fn name_states(&mut self, pid: u32, tid: u64, name: Option<&str>) -> io::Result<()> {
        let states = tid.saturating_add(STATES);
        let (key, named) = ((pid, Some(states), name.is_some()), (pid, Some(states), true));
        if self.named.contains(&named) || !self.named.insert(key) {
            return Ok(());
        }
        let title = name.map_or_else(|| format!("thread {tid} states"), |name| format!("{name} states"));
        let (pid, args) = (Some(pid), Some(Name { name: &title }));
        self.element(&Element { ph: "M", name: "thread_name", pid, tid: Some(states), args, ..none() })?;
        for shown in [tid, states] {
            let (tid, args) = (Some(shown), Some(SortIndex { sort_index: tid }));
            self.element(&Element { ph: "M", name: "thread_sort_index", pid, tid, args, ..none() })?;
        }
        Ok(())
    }

    /// Draws an arrow from the parent of a span, which is on another thread.
    fn flow(&mut self, span: &Span<'_>, parent: ThreadId, ts: f64, sources: &Sources) -> io::Result<()> {
        let id = Some(format!("{:x}.{:x}", sources.process_of(span.thread).shown_pid.unwrap_or(0), span.id));
        for (ph, thread) in [("s", parent), ("f", span.thread)] {
            let element = self.of::<()>(ph, "parent", thread, sources)?;
            self.element(&Element { cat: "parent", ts: Some(ts), id: id.clone(), bp: Some("e"), ..element })?;
        }
        Ok(())
    }
}

/// Nanoseconds as microseconds.
#[expect(clippy::cast_precision_loss, reason = "exact for 104 days")]
fn microseconds(ns: i64) -> f64 {
    ns as f64 / 1000.0
}

/// The scope of an instant: the process, or the whole trace if the process is unknown.
fn scope(pid: Option<u32>) -> &'static str {
    if pid.is_some() { "p" } else { "g" }
}

fn none<A>() -> Element<'static, A> {
    Element {
        ph: "",
        name: "",
        cat: "",
        pid: None,
        tid: None,
        ts: None,
        dur: None,
        s: None,
        id2: None,
        id: None,
        bp: None,
        args: None,
    }
}

impl<W: Write> Format for Chrome<W> {
    fn needs(&self) -> Needs {
        Needs { threads: ThreadDetail::States, ..Needs::SLICES }
    }

    fn begin(&mut self, first_ns: i64) -> io::Result<()> {
        self.origin = Some(first_ns);
        Ok(())
    }

    fn event(&mut self, event: &Event, thread: ThreadId, sources: &Sources) -> io::Result<()> {
        let (ts, cat) = (Some(self.time(event.time_ns)?), plain::provider(event.name()));
        let element = self.of("i", event.name(), thread, sources)?;
        let s = Some(if element.tid.is_some() { "t" } else { scope(element.pid) });
        self.element(&Element { cat, ts, s, args: Some(EventArgs(event)), ..element })?;
        let counters: Vec<_> = plain::counters(event, &self.counters).collect();
        for (name, value) in counters {
            let element = self.of("C", &name, thread, sources)?;
            self.element(&Element { cat, ts, args: Some(Value { value }), ..element })?;
        }
        Ok(())
    }

    fn span(&mut self, span: &Span<'_>, sources: &Sources) -> io::Result<()> {
        let ts = self.time(span.begin_ns)?;
        let end = span.end_ns.map(|end| self.time(end)).transpose()?;
        let cat = plain::provider(span.name);
        let before_us = Some(-self.since_origin(span.begin_ns)).filter(|before| *before > 0).map(microseconds);
        let args = Some(SpanArgs { span, before_us });
        let (begin, end_thread) = match (span.end, span.nests) {
            (SpanEnd::Ended(..), true) => ("X", None),
            (SpanEnd::Ended(_, thread), false) => ("b", Some(thread)),
            (_, true) => ("B", None),
            (_, false) => ("b", None),
        };
        let id2 = (begin == "b").then(|| LocalId { local: format!("0x{:x}", span.id) });
        // Convert the difference of the times, not the difference of the rounded microseconds.
        let length = span.end_ns.filter(|_| begin == "X").map(|end| end.saturating_sub(span.begin_ns));
        let dur = length.map(microseconds);
        let element = self.of(begin, span.name, span.thread, sources)?;
        self.element(&Element { cat, ts: Some(ts), dur, id2: id2.clone(), args, ..element })?;
        if let Some(thread) = end_thread {
            let element = self.of::<()>("e", span.name, thread, sources)?;
            self.element(&Element { cat, ts: end, id2, ..element })?;
        }
        span.parent_thread.map_or(Ok(()), |parent| self.flow(span, parent, ts, sources))
    }

    fn thread_state(&mut self, state: &ThreadState<'_>, sources: &Sources) -> io::Result<()> {
        let ts = Some(self.time(state.begin_ns)?);
        let name = sources.thread(state.thread).name.as_deref().or(state.thread_name);
        let element = self.of("X", state.cause.name(), state.thread, sources)?;
        let Some((pid, tid)) = element.pid.zip(element.tid) else { return Ok(()) };
        self.name_states(pid, tid, name)?;
        let (tid, cat) = (Some(tid.saturating_add(STATES)), "thread state");
        let dur = Some(microseconds(state.end_ns.saturating_sub(state.begin_ns)));
        let args = Some(StateArgs { call: state.call, woken_by: state.woken_by });
        self.element(&Element { cat, tid, ts, dur, args, ..element })
    }

    fn loss(&mut self, loss: &LossReport<'_>, sources: &Sources) -> io::Result<()> {
        let (since_us, ts) = (self.time(loss.loss.from_ns)?, self.time(loss.loss.to_ns)?);
        let args = Some(LossArgs { events: loss.events, packets: loss.packets, since_us });
        let element = self.of("i", "lost events", loss.thread, sources)?;
        let s = Some(scope(element.pid));
        self.element(&Element { cat: "loss", ts: Some(ts), s, args, ..element })
    }

    fn damage(&mut self, damage: &Damage) -> io::Result<()> {
        self.head()?;
        let (ts, text) = (Some(0.0), damage.to_string());
        self.element(&Element {
            ph: "i",
            name: "damage",
            cat: "loss",
            ts,
            s: Some("g"),
            args: Some(Name { name: &text }),
            ..none()
        })
    }

    fn finish(&mut self, summary: &Summary, _sources: &Sources) -> io::Result<()> {
        self.head()?;
        self.out.write_all(b"\n],\"otherData\":")?;
        json::to_writer(&mut self.out, &OtherData { origin_ns: self.origin.unwrap_or(0), summary })?;
        self.out.write_all(b"}\n")?;
        self.out.flush()
    }
}
