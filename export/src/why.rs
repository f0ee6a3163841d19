//! Why spans took long: how the time of each divides into running, being ready, and waiting for something.
//!
//! The exporter divides the time of each span (`waits`), and gives its parent. The slowest ones are kept here, with their child spans, events, waits,
//! and the functions of their samples. Memory is proportional to the open spans, the threads, and the spans that are kept.

use crate::format::{Format, LossReport, Needs, Span, SpanEnd, Summary, ThreadDetail};
use crate::plain::Plain;
use crate::samples::Code;
use crate::sources::{Sources, ThreadId};
use crate::waits::{Division, Sample, SpanTime, WaitKind};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::io;
use tracepoint_reader::text::{Style, TextOptions, TextWriter};
use tracepoint_reader::{Damage, Event, Item, Value};

/// Maximum number of functions of a span, and of names of child spans.
const MAX_ROWS: usize = 16;
/// Maximum number of events inside a span that are kept.
const MAX_INSIDE: usize = 8;
/// Maximum number of groups. Spans with further values are not in any.
const MAX_GROUPS: usize = 10_000;

/// Samples of a span in one function.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct FunctionSamples {
    /// The name of the function.
    pub function: String,
    /// The number of samples in this function itself.
    pub samples: u64,
    /// The number of samples in it and in the functions that it called.
    pub with_callees: u64,
}

/// Child spans of one name in a span.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct Children {
    /// Their number.
    pub count: u64,
    /// Their total time in nanoseconds.
    pub nanoseconds: u64,
}

/// A span that took long.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct SlowSpan {
    /// `provider:span`.
    pub name: String,
    /// Its `span_id`.
    pub id: u64,
    /// Its begin, in nanoseconds since the epoch.
    pub begin_ns: i64,
    /// Its duration in nanoseconds; until the end of the trace if it is open.
    pub nanoseconds: u64,
    /// True if it had not ended.
    pub is_open: bool,
    /// Its process.
    pub process: Option<String>,
    /// The thread on which it began.
    pub thread: String,
    /// The fields of its begin event, as text.
    pub fields: String,
    /// How its time divides.
    pub division: Division,
    /// Its waits, the longest kind first.
    pub waits: Vec<WaitKind>,
    /// The number of samples of the processor while it ran.
    pub samples: u64,
    /// The functions that they are in, the most frequent one first.
    pub functions: Vec<FunctionSamples>,
    /// Its child spans by name.
    pub children: BTreeMap<String, Children>,
    /// The first events inside it, as text, without those of spans.
    pub events: Vec<String>,
    /// The number of further ones.
    pub more_events: u64,
    #[serde(skip)]
    process_index: u32,
    /// Their functions are found at the end: the code of a process may be described only after its first samples.
    #[serde(skip)]
    stacks: Vec<Sample>,
}

/// Spans with the same value of a field.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct SpanGroup {
    /// Their number.
    pub count: u64,
    /// Their total time in nanoseconds.
    pub nanoseconds: u64,
    /// How it divides.
    pub division: Division,
}

/// The answer.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct Reasons {
    /// The number of spans that were selected.
    pub selected: u64,
    /// The slowest of them, the slowest one first.
    pub spans: Vec<SlowSpan>,
    /// All of them by the value of a field, if asked.
    pub groups: BTreeMap<String, SpanGroup>,
    /// True if the trace says when threads ran.
    pub has_switches: bool,
    /// True if it says what they waited for.
    pub has_reasons: bool,
}

type Select<'a> = Box<dyn FnMut(&Span<'_>) -> bool + 'a>;

/// A format that finds the slowest of the selected spans, and why they were slow.
pub struct Why<'a> {
    select: Select<'a>,
    max_spans: usize,
    by: Option<String>,
    code: Code,
    reasons: Reasons,
}

impl fmt::Debug for Why<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Why").field("max_spans", &self.max_spans).field("by", &self.by).finish_non_exhaustive()
    }
}

impl<'a> Why<'a> {
    /// Keeps the slowest spans that `select` accepts, at most `max_spans`; sums all that it accepts by the value of a field of their begin or end.
    pub fn new(select: impl FnMut(&Span<'_>) -> bool + 'a, max_spans: usize, by: Option<String>) -> Self {
        Self { select: Box::new(select), max_spans, by, code: Code::default(), reasons: Reasons::default() }
    }

    /// The answer, after the end of the trace.
    pub fn into_reasons(self) -> Reasons {
        self.reasons
    }

    /// Adds a span to its parent, if that one is kept.
    fn add_to_parent(&mut self, span: &Span<'_>, process: u32, nanoseconds: u64) {
        let Some(parent) = span.parent else { return };
        let is_parent = |kept: &&mut SlowSpan| (kept.process_index, kept.id) == (process, parent);
        let Some(kept) = self.reasons.spans.iter_mut().find(is_parent) else { return };
        if kept.children.len() < MAX_ROWS || kept.children.contains_key(span.name) {
            let children = kept.children.entry(span.name.to_owned()).or_default();
            children.count += 1;
            children.nanoseconds = children.nanoseconds.saturating_add(nanoseconds);
        }
    }

    /// Returns whether a span of this duration is among the slowest so far.
    fn is_slow(&self, nanoseconds: u64) -> bool {
        let slowest = &self.reasons.spans;
        slowest.len() < self.max_spans || slowest.last().is_some_and(|last| last.nanoseconds < nanoseconds)
    }

    fn keep(&mut self, slow: SlowSpan) {
        let spans = &mut self.reasons.spans;
        let at = spans.partition_point(|known| known.nanoseconds >= slow.nanoseconds);
        spans.insert(at, slow);
        spans.truncate(self.max_spans);
    }
}

impl Format for Why<'_> {
    fn needs(&self) -> Needs {
        Needs { inside: MAX_INSIDE, threads: ThreadDetail::Samples, ..Needs::SPANS }
    }

    fn event(&mut self, event: &Event, thread: ThreadId, sources: &Sources) -> io::Result<()> {
        let is_of_kernel = sources.process_of(thread).program.is_none();
        match event.name() {
            "perf:switch" if is_of_kernel => self.reasons.has_switches = true,
            "sched:sched_waking" if is_of_kernel => self.reasons.has_reasons |= self.reasons.has_switches,
            _ => {
                self.code.note(event, sources.thread(thread).process);
            }
        }
        Ok(())
    }

    fn span(&mut self, span: &Span<'_>, sources: &Sources) -> io::Result<()> {
        let process = sources.thread(span.thread).process;
        let end = span.end_ns.unwrap_or(span.last_ns);
        let nanoseconds = span.begin_ns.abs_diff(end);
        self.add_to_parent(span, process, nanoseconds);
        if !(self.select)(span) {
            return Ok(());
        }
        self.reasons.selected += 1;
        let SpanTime { division, waits, samples } = span.time.cloned().unwrap_or_default();
        if let Some(field) = &self.by {
            let value =
                [span.begin, span.end_event()].into_iter().flatten().find_map(|event| self::field(event, field));
            let value = value.and_then(text).unwrap_or_else(|| format!("no {field}"));
            if self.reasons.groups.len() < MAX_GROUPS || self.reasons.groups.contains_key(&value) {
                let group = self.reasons.groups.entry(value).or_default();
                group.count += 1;
                group.nanoseconds = group.nanoseconds.saturating_add(nanoseconds);
                group.division.add_all(&division);
            }
        }
        if !self.is_slow(nanoseconds) {
            return Ok(());
        }
        let thread = sources.thread(span.thread);
        let of_process = sources.process(process);
        self.keep(SlowSpan {
            name: span.name.to_owned(),
            id: span.id,
            begin_ns: span.begin_ns,
            nanoseconds,
            is_open: !matches!(span.end, SpanEnd::Ended(..)),
            process: of_process.program.clone(),
            thread: thread.tid.map_or_else(String::new, |tid| tid.to_string()),
            fields: span.begin.map(fields).unwrap_or_default(),
            division,
            waits,
            samples: samples.len() as u64,
            functions: Vec::new(),
            children: BTreeMap::new(),
            events: span.inside.events.iter().map(|event| format!("{} {}", event.name(), fields(event))).collect(),
            more_events: span.inside.more,
            process_index: process,
            stacks: samples,
        });
        Ok(())
    }

    fn loss(&mut self, _loss: &LossReport<'_>, _sources: &Sources) -> io::Result<()> {
        Ok(())
    }

    fn damage(&mut self, _damage: &Damage) -> io::Result<()> {
        Ok(())
    }

    fn finish(&mut self, _summary: &Summary, _sources: &Sources) -> io::Result<()> {
        for slow in &mut self.reasons.spans {
            slow.functions = functions(&mut self.code, &slow.stacks);
        }
        Ok(())
    }
}

/// The functions of samples, the most frequent one first.
fn functions(code: &mut Code, samples: &[Sample]) -> Vec<FunctionSamples> {
    let mut counts: HashMap<String, [u64; 2]> = HashMap::new();
    for Sample { process, stack, .. } in samples {
        let names = code.functions(*process, stack);
        if let Some(innermost) = names.last() {
            counts.entry(innermost.clone()).or_default()[0] += 1;
        }
        // Once, even if it calls itself.
        for name in names.into_iter().collect::<BTreeSet<_>>() {
            counts.entry(name).or_default()[1] += 1;
        }
    }
    let all = counts.into_iter().filter(|(_, [samples, _])| *samples > 0);
    let mut all: Vec<_> =
        all.map(|(function, [samples, with_callees])| FunctionSamples { function, samples, with_callees }).collect();
    all.sort_by(|a, b| (b.samples, b.with_callees, &a.function).cmp(&(a.samples, a.with_callees, &b.function)));
    all.truncate(MAX_ROWS);
    all
}

fn field<'e>(event: &'e Event, name: &str) -> Option<&'e Value> {
    event.fields.as_ref()?.get(name)
}

/// A value as a text; `None` if it has parts.
fn text(value: &Value) -> Option<String> {
    Some(match Plain::from(value) {
        Plain::Bool(value) => value.to_string(),
        Plain::Unsigned(value) => value.to_string(),
        Plain::Signed(value) => value.to_string(),
        Plain::Float(value) => value.to_string(),
        Plain::Text(text) => text.into_owned(),
        _ => return None,
    })
}

/// The fields of an event, as `tracectl view` shows them.
fn fields(event: &Event) -> String {
    let (mut line, mut text) = (Vec::new(), TextWriter::new(TextOptions::from(Style::Compact)));
    // Writing to memory cannot fail.
    let _ = text.write_item(&mut line, &Item::Event(event.clone()));
    let line = String::from_utf8_lossy(&line);
    line.split_once(event.name()).map_or("", |(_, fields)| fields.trim()).to_owned()
}
