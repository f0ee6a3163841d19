//! Why spans took long: how the time of each divides into running, being ready, and waiting for something.
//!
//! ```text
//!   kernel events of `record --waits` ──▶ Threads: the state of each thread, and sums of time by cause
//!   samples of `record --samples`     ──▶ Threads: the call stacks that it ran; Code: their functions
//!   begin and end of a span           ──▶ the difference of the sums of its thread
//!   Exporter: spans with their parents ──▶ the slowest ones, with their child spans, events and waits
//! ```
//!
//! The time of an asynchronous span is that of its polls; between them, it is not polled. Memory is proportional to the open spans, the threads, and
//! the spans that are kept.

mod cause;
mod threads;

use crate::format::{Format, LossReport, Needs, Span, SpanEnd, Summary};
use crate::plain::Plain;
use crate::samples::{self, Code};
use crate::sources::{Sources, ThreadId};
use cause::WokenBy;
pub use cause::{Cause, Division};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::io;
use threads::{Key, Mark, Out, Sample, Threads};
use tracepoint_reader::text::{Style, TextOptions, TextWriter};
use tracepoint_reader::{Damage, Event, Item, SpanPart, Value};

/// Maximum number of kinds of waits of a span, of functions, and of names of child spans.
const MAX_ROWS: usize = 16;
/// Maximum number of events inside a span that are kept.
const MAX_INSIDE: usize = 8;
/// Maximum number of groups. Spans with further values are not in any.
const MAX_GROUPS: usize = 10_000;
/// Bits of `common_flags`: the event fired in an interrupt; in work left by one.
const HARD_INTERRUPT: u64 = 1 << 3;
const SOFT_INTERRUPT: u64 = 1 << 4;
/// Bits of `prev_state` that say what a thread waits for; without any of them it is ready. 0x100, for preempted, is not one of them.
const STATES: u64 = 0xff;
const UNINTERRUPTIBLE: u64 = 2;

/// Waits of one kind in a span.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct WaitKind {
    /// What the thread waited for.
    pub cause: Cause,
    /// The system call in which it waited.
    pub call: Option<String>,
    /// The name and the id of the thread that ended the waits.
    pub woken_by: Option<String>,
    /// Their number.
    pub count: u64,
    /// Their total time in nanoseconds.
    pub nanoseconds: u64,
    /// What the thread that ended them did meanwhile.
    pub meanwhile: Option<Division>,
}

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

/// A span that has begun or ended, and was not passed yet.
#[derive(Debug)]
struct Pending {
    thread: Key,
    mark: Mark,
    /// The `parent_id` of its begin event.
    parent: u64,
    name: String,
    ended: Option<Ended>,
    /// The sums of its polls, if it has any.
    polls: Option<Ended>,
}

#[derive(Debug, Default)]
struct Ended {
    division: Division,
    waits: Vec<WaitKind>,
    samples: Vec<Sample>,
}

impl Ended {
    /// An unknown division of a time.
    fn unknown(nanoseconds: u64) -> Self {
        Self { division: Division::unknown(nanoseconds), ..Self::default() }
    }
}

type Select<'a> = Box<dyn FnMut(&Span<'_>) -> bool + 'a>;

/// A format that finds the slowest of the selected spans, and why they were slow.
pub struct Why<'a> {
    select: Select<'a>,
    max_spans: usize,
    by: Option<String>,
    threads: Threads,
    code: Code,
    hosts: HashMap<Option<String>, u32>,
    pending: HashMap<(u32, u64), Pending>,
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
        Self {
            select: Box::new(select),
            max_spans,
            by,
            threads: Threads::default(),
            code: Code::default(),
            hosts: HashMap::new(),
            pending: HashMap::new(),
            reasons: Reasons::default(),
        }
    }

    /// The answer, after the end of the trace.
    pub fn into_reasons(self) -> Reasons {
        self.reasons
    }

    fn key(&mut self, thread: ThreadId, sources: &Sources) -> Key {
        let host = &sources.process_of(thread).host;
        let next = self.hosts.len() as u32;
        let host = match self.hosts.get(host) {
            Some(host) => *host,
            None => *self.hosts.entry(host.clone()).or_insert(next),
        };
        (host, sources.thread(thread).tid.unwrap_or_default())
    }

    /// Returns whether an event is one of the kernel's about a thread, and notes it.
    fn note(&mut self, event: &Event, key: Key, process: u32) -> bool {
        let (time, of) = (event.time_ns, |field: &str| number(event, field));
        match event.name() {
            "perf:switch" => {
                self.reasons.has_switches = true;
                match bytes(event, "state") {
                    b"running" => self.threads.switched_in(key, time),
                    b"ready" => self.threads.switched_out(key, time, Out::Ready),
                    _ => self.threads.switched_out(key, time, Out::Blocked { is_uninterruptible: false }),
                }
            }
            "perf:thread" => {
                self.threads.name(key, bytes(event, "comm"));
                self.threads.recorded(key, time, bytes(event, "state").first().copied().unwrap_or_default());
            }
            "perf:end" => self.threads.end(key.0, time),
            "perf:major_fault" => self.threads.faulted(key),
            // Of a recording of the kernel alone: it does not say when threads are switched in.
            "sched:sched_switch" | "sched:sched_waking" if !self.reasons.has_switches => return false,
            "sched:sched_switch" => {
                let thread = (key.0, of("prev_pid"));
                self.threads.name(thread, bytes(event, "prev_comm"));
                let state = of("prev_state") & STATES;
                let is_uninterruptible = state & UNINTERRUPTIBLE != 0;
                let out = if state == 0 { Out::Ready } else { Out::Blocked { is_uninterruptible } };
                self.threads.switched_out(thread, time, out);
            }
            "sched:sched_waking" => {
                self.reasons.has_reasons = true;
                let flags = of("common_flags");
                let woken_by = match key.1 {
                    _ if flags & HARD_INTERRUPT != 0 => WokenBy::Interrupt,
                    _ if flags & SOFT_INTERRUPT != 0 => WokenBy::SoftInterrupt,
                    0 => WokenBy::Interrupt,
                    _ => WokenBy::Thread,
                };
                self.threads.woken((key.0, of("pid")), time, woken_by, key);
            }
            "raw_syscalls:sys_enter" => {
                if let Some(Value::Enum(value, labels)) = field(event, "id") {
                    self.threads.entered(key, labels.labels(value.value).next().unwrap_or("system call"));
                }
            }
            "raw_syscalls:sys_exit" => self.threads.left(key),
            samples::SAMPLE => {
                self.threads.sampled(key, Sample { time, process, stack: samples::stack(event).unwrap_or_default() });
                return false;
            }
            _ => return self.code.note(event, process),
        }
        true
    }

    /// The waits of a thread since a mark, by kind.
    fn waits(&self, key: Key, mark: &Mark) -> Vec<WaitKind> {
        let mut kinds: Vec<WaitKind> = Vec::new();
        for wait in self.threads.waits(key, mark).filter(|wait| wait.cause != Cause::Unknown) {
            let (call, woken_by) = (wait.call.as_deref(), wait.woken_by.as_ref());
            let name = |key: Key| match self.threads.name_of(key) {
                Some(name) => format!("{name} [{}]", key.1),
                None => format!("[{}]", key.1),
            };
            let woken_by = woken_by.map(|(key, did)| (name(*key), did));
            let is_of = |kind: &&mut WaitKind| {
                let known = (kind.cause, kind.call.as_deref(), kind.woken_by.as_deref());
                known == (wait.cause, call, woken_by.as_ref().map(|(name, _)| name.as_str()))
            };
            let nanoseconds = wait.from.abs_diff(wait.to);
            if let Some(kind) = kinds.iter_mut().find(is_of) {
                kind.count += 1;
                kind.nanoseconds = kind.nanoseconds.saturating_add(nanoseconds);
                if let (Some(meanwhile), Some((_, did))) = (&mut kind.meanwhile, &woken_by) {
                    meanwhile.add_all(did);
                }
                continue;
            }
            let meanwhile = woken_by.as_ref().map(|(_, did)| (***did).clone());
            kinds.push(WaitKind {
                cause: wait.cause,
                call: call.map(str::to_owned),
                woken_by: woken_by.map(|(name, _)| name),
                count: 1,
                nanoseconds,
                meanwhile,
            });
        }
        kinds.sort_by_key(|kind| std::cmp::Reverse(kind.nanoseconds));
        kinds.truncate(MAX_ROWS);
        kinds
    }

    /// The division, the waits and the samples of a pending span until this time.
    fn until(&self, pending: &Pending, time: i64) -> Ended {
        let division = self.threads.since(pending.thread, &pending.mark, time);
        let samples = self.threads.samples(pending.thread, &pending.mark).cloned().collect();
        Ended { division, waits: self.waits(pending.thread, &pending.mark), samples }
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
        Needs { inside: MAX_INSIDE, ..Needs::SPANS }
    }

    fn event(&mut self, event: &Event, thread: ThreadId, sources: &Sources) -> io::Result<()> {
        let key = self.key(thread, sources);
        if !self.note(event, key, sources.thread(thread).process) {
            self.threads.runs_at(key, event.time_ns);
        }
        Ok(())
    }

    fn span_event(&mut self, event: &Event, part: SpanPart, thread: ThreadId, sources: &Sources) -> io::Result<()> {
        let key = self.key(thread, sources);
        let Some(mark) = self.threads.runs_at(key, event.time_ns) else { return Ok(()) };
        let process = sources.thread(thread).process;
        let id = (process, number(event, "span_id"));
        if part == SpanPart::Begin {
            let name = event.class.span().map_or("", |(name, _)| name).to_owned();
            let parent = number(event, "parent_id");
            self.pending.insert(id, Pending { thread: key, mark, parent, name, ended: None, polls: None });
            return Ok(());
        }
        let polls = self.pending.get_mut(&id).and_then(|pending| pending.polls.take());
        let Some(pending) = self.pending.get(&id).filter(|pending| pending.ended.is_none()) else { return Ok(()) };
        let duration = pending.mark.until(event.time_ns);
        let mut ended = match polls {
            Some(polls) => polls,
            None if pending.thread == key => self.until(pending, event.time_ns),
            None => Ended::unknown(duration),
        };
        ended.division.fit(duration, Cause::NotPolled);
        let parent = (process, pending.parent);
        let poll = pending.name.strip_suffix("_poll").map(str::to_owned);
        if let Some(parent) = self.pending.get_mut(&parent).filter(|parent| Some(&parent.name) == poll.as_ref()) {
            let polls = parent.polls.get_or_insert_default();
            polls.division.add_all(&ended.division);
            polls.samples.extend_from_slice(&ended.samples);
        }
        if let Some(pending) = self.pending.get_mut(&id) {
            pending.ended = Some(ended);
        }
        Ok(())
    }

    fn span(&mut self, span: &Span<'_>, sources: &Sources) -> io::Result<()> {
        let process = sources.thread(span.thread).process;
        let end = span.end_ns.unwrap_or(span.last_ns);
        let nanoseconds = span.begin_ns.abs_diff(end);
        self.add_to_parent(span, process, nanoseconds);
        let pending = self.pending.remove(&(process, span.id));
        if !(self.select)(span) {
            return Ok(());
        }
        self.reasons.selected += 1;
        let Ended { division, waits, samples } = match pending {
            Some(Pending { ended: Some(ended), .. }) => ended,
            Some(mut open) => match open.polls.take() {
                None => self.until(&open, end),
                Some(mut polls) => {
                    polls.division.fit(nanoseconds, Cause::NotPolled);
                    polls
                }
            },
            None => Ended::unknown(nanoseconds),
        };
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

    fn loss(&mut self, loss: &LossReport<'_>, sources: &Sources) -> io::Result<()> {
        // Only the kernel's streams have no process.
        let (host, _) = self.key(loss.thread, sources);
        if sources.process_of(loss.thread).program.is_none() {
            self.threads.lost(host, loss.loss.from_ns, loss.loss.to_ns);
        }
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

fn number(event: &Event, name: &str) -> u64 {
    field(event, name).and_then(Value::as_u64).unwrap_or_default()
}

fn bytes<'e>(event: &'e Event, name: &str) -> &'e [u8] {
    field(event, name).and_then(Value::as_bytes).unwrap_or_default()
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
