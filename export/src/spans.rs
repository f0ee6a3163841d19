//! Pairs the events that begin and end spans, by process and id.
//!
//! What is open is kept until its end, in at most [`MAX_OPEN`] spans and about [`MAX_BYTES`]; beyond that, the oldest is no longer waited for.
//!
//! Spans of a thread are a stack as long as each ends before the ones below it. A span that ends elsewhere than at the top, or on another
//! thread, is said not to nest. So two spans that nest never overlap in part: when the earlier one ended, the later one would have been above
//! it. (Two that begin at the same nanosecond do not nest, since viewers sort by time.) A span whose polls are recorded as spans (`async span`)
//! is never on the stack, since it begins where it is not run.
//!
//! An end that is missing must not make its span the parent of all that follows. So open spans leave the stack, and stay open, when events of
//! their thread are lost in the channel that records their ends, and when a span ends that is below them: they began in it, and have not ended
//! in it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::sync::Arc;

use tracepoint_reader::{Event, StructValue, Value};

use crate::format::{Inside, Needs, Span, SpanEnd};
use crate::sources::{Sources, ThreadId};

/// The largest number of open spans.
const MAX_OPEN: usize = 1 << 18;
/// The largest size of their events, in bytes, as far as it can be estimated.
const MAX_BYTES: usize = 64 << 20;
/// Further children on other threads are not linked to their parent.
const MAX_REMOTE: usize = 64;

/// A process and the id of a span.
type Key = (u32, u64);

/// What the class of a begin event says about its spans.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kind<'a> {
    /// `provider:span`.
    pub(crate) name: &'a str,
    /// Whether its polls are spans of their own.
    pub(crate) is_async: bool,
    /// Whether a span without `parent_id` has no parent, as in `tracing`.
    pub(crate) is_root_without_parent: bool,
    /// The channels that record their ends, by the ids of their stream classes.
    pub(crate) end_channels: &'a Arc<[u64]>,
}

#[derive(Debug)]
struct OpenSpan {
    begin: Event,
    name: String,
    thread: ThreadId,
    /// The number of its begin among all.
    number: u64,
    parent: Option<u64>,
    parent_thread: Option<ThreadId>,
    root: u64,
    path: u32,
    children_ns: u64,
    remote_children: Vec<u64>,
    end_channels: Arc<[u64]>,
    inside: Inside,
    bytes: usize,
}

impl OpenSpan {
    fn duration_to(&self, end: i64) -> u64 {
        u64::try_from(end.saturating_sub(self.begin.time_ns)).unwrap_or(0)
    }

    fn span<'a>(&'a self, id: u64, end: SpanEnd<'a>, nests: bool, last_ns: i64) -> Span<'a> {
        let end_ns = if let SpanEnd::Ended(event, _) = end { Some(event.time_ns) } else { None };
        Span {
            name: &self.name,
            id,
            parent: self.parent,
            root: self.root,
            begin_ns: self.begin.time_ns,
            end_ns,
            last_ns,
            thread: self.thread,
            begin: Some(&self.begin),
            end,
            nests,
            path: self.path,
            self_ns: end_ns.map_or(0, |end| self.duration_to(end).saturating_sub(self.children_ns)),
            parent_thread: self.parent_thread,
            remote_children: &self.remote_children,
            inside: &self.inside,
        }
    }
}

/// The open spans.
#[derive(Debug)]
pub(crate) struct Spans {
    needs: Needs,
    open: HashMap<Key, OpenSpan>,
    /// The open spans by the numbers of their begins.
    by_number: BTreeMap<u64, Key>,
    /// Those of each thread that are not known to be asynchronous.
    stacks: HashMap<ThreadId, BTreeSet<u64>>,
    begun: u64,
    bytes: usize,
    max_open: usize,
    /// The time of the last event.
    last_ns: i64,
}

impl Spans {
    pub(crate) fn new(needs: Needs) -> Self {
        Self {
            needs,
            open: HashMap::new(),
            by_number: BTreeMap::new(),
            stacks: HashMap::new(),
            begun: 0,
            bytes: 0,
            max_open: MAX_OPEN,
            last_ns: 0,
        }
    }

    /// Any event comes: the trace goes on until its time at least.
    pub(crate) fn goes_on_until(&mut self, time_ns: i64) {
        self.last_ns = self.last_ns.max(time_ns);
    }

    pub(crate) fn set_max_open(&mut self, spans: usize) {
        self.max_open = spans.clamp(1, MAX_OPEN);
    }

    /// A span begins. `forget` is given each span that is no longer waited for.
    pub(crate) fn begin(
        &mut self,
        event: &Event,
        kind: Kind<'_>,
        thread: ThreadId,
        sources: &mut Sources,
        mut forget: impl FnMut(&Span<'_>, &Sources) -> io::Result<()>,
    ) -> io::Result<()> {
        let key = (sources.thread(thread).process, number(event, "span_id"));
        if let Some((_, span)) = self.remove(key) {
            forget(&span.span(key.1, SpanEnd::Forgotten, false, self.last_ns), sources)?;
        }
        let recorded = Some(number(event, "parent_id")).filter(|id| *id != 0);
        let implied = || self.innermost(thread).filter(|_| !kind.is_root_without_parent);
        let parent = recorded.map(|id| (key.0, id)).or_else(implied);
        let (mut root, mut path, mut parent_thread) = (parent.map_or(key.1, |parent| parent.1), 0, None);
        if let Some(parent) = parent.and_then(|parent| self.open.get_mut(&parent)) {
            (root, path) = (parent.root, parent.path);
            if parent.thread != thread {
                parent_thread = Some(parent.thread);
                if parent.remote_children.len() < MAX_REMOTE {
                    parent.remote_children.push(key.1);
                }
            }
        }
        let bytes = size(event);
        let number = self.begun;
        let span = OpenSpan {
            begin: event.clone(),
            name: kind.name.to_owned(),
            thread,
            number,
            parent: parent.map(|parent| parent.1),
            parent_thread,
            root,
            path: sources.path_below(path, kind.name),
            children_ns: 0,
            remote_children: Vec::new(),
            end_channels: Arc::clone(kind.end_channels),
            inside: Inside::default(),
            bytes,
        };
        self.begun += 1;
        self.bytes += bytes;
        self.open.insert(key, span);
        self.by_number.insert(number, key);
        if !kind.is_async {
            self.stacks.entry(thread).or_default().insert(number);
        }
        while self.open.len() > self.max_open || self.bytes > MAX_BYTES {
            let Some(oldest) = self.by_number.values().next().copied() else { break };
            if let Some((_, span)) = self.remove(oldest) {
                forget(&span.span(oldest.1, SpanEnd::Forgotten, false, self.last_ns), sources)?;
            }
        }
        Ok(())
    }

    /// A span ends; `show` is given it. A span whose begin is missing has one by its duration.
    pub(crate) fn end(
        &mut self,
        event: &Event,
        name: &str,
        thread: ThreadId,
        sources: &mut Sources,
        show: impl FnOnce(&Span<'_>, &Sources) -> io::Result<()>,
    ) -> io::Result<()> {
        let key = (sources.thread(thread).process, number(event, "span_id"));
        if self.open.get(&key).is_none_or(|open| open.name != name) {
            let duration = i64::try_from(number(event, "duration_ns")).unwrap_or(i64::MAX);
            let path = sources.path_below(0, name);
            let inside = Inside::default();
            let span = Span {
                name,
                id: key.1,
                parent: None,
                root: key.1,
                begin_ns: event.time_ns.saturating_sub(duration),
                end_ns: Some(event.time_ns),
                last_ns: self.last_ns,
                thread,
                begin: None,
                end: SpanEnd::Ended(event, thread),
                nests: false,
                path,
                self_ns: duration.unsigned_abs(),
                parent_thread: None,
                remote_children: &[],
                inside: &inside,
            };
            return show(&span, sources);
        }
        let above = self.open.get(&key).map(|span| span.number).and_then(|number| {
            let stack = self.stacks.get_mut(&thread).filter(|stack| stack.contains(&number))?;
            Some(stack.split_off(&(number + 1)))
        });
        let Some((was_on_top, span)) = self.remove(key) else { return Ok(()) };
        let nests = was_on_top && above.is_some_and(|above| above.is_empty());
        if let Some(parent) = span.parent.and_then(|parent| self.open.get_mut(&(key.0, parent))) {
            parent.children_ns = parent.children_ns.saturating_add(span.duration_to(event.time_ns));
        }
        show(&span.span(key.1, SpanEnd::Ended(event, thread), nests, self.last_ns), sources)
    }

    /// An event that neither begins nor ends a span: keeps it with the span that it is in. Returns whether there is one. An event with a
    /// `span_id` is in that one, and in none if it is 0.
    pub(crate) fn inside(&mut self, event: &Event, thread: ThreadId, sources: &Sources) -> bool {
        let named = field(event, "span_id").map(|id| (sources.thread(thread).process, id));
        let key = named.filter(|(_, id)| *id != 0).or_else(|| self.innermost(thread).filter(|_| named.is_none()));
        let Some(span) = key.and_then(|key| self.open.get_mut(&key)) else { return false };
        let bytes = size(event);
        if span.inside.events.len() < self.needs.inside && self.bytes + bytes <= MAX_BYTES {
            span.inside.events.push(event.clone());
            span.bytes += bytes;
            self.bytes += bytes;
        } else {
            span.inside.more += 1;
        }
        true
    }

    /// Events of a thread are lost in a channel, perhaps among them the ends of the open spans whose ends it records, and of those of which it is
    /// not known where their ends are recorded.
    pub(crate) fn interrupt(&mut self, thread: ThreadId, channel: u64) {
        let may_have_ended = |span: &OpenSpan| span.end_channels.is_empty() || span.end_channels.contains(&channel);
        if let Some(stack) = self.stacks.get_mut(&thread) {
            stack.retain(|number| {
                let span = self.by_number.get(number).and_then(|key| self.open.get(key));
                span.is_some_and(|span| !may_have_ended(span))
            });
        }
    }

    /// The end of the trace: those that are open, in the order of their begins.
    pub(crate) fn finish(&mut self, mut show: impl FnMut(&Span<'_>) -> io::Result<()>) -> io::Result<u64> {
        let keys: Vec<_> = self.by_number.values().copied().collect();
        for key in &keys {
            if let Some(span) = self.open.get(key) {
                let is_on_stack = self.stacks.get(&span.thread).is_some_and(|stack| stack.contains(&span.number));
                show(&span.span(key.1, SpanEnd::Open, is_on_stack, self.last_ns))?;
            }
        }
        Ok(keys.len() as u64)
    }

    /// The innermost span of a thread.
    fn innermost(&self, thread: ThreadId) -> Option<Key> {
        let number = self.stacks.get(&thread)?.last()?;
        self.by_number.get(number).copied()
    }

    /// Takes a span out, and tells whether it was at the top of its thread's stack.
    fn remove(&mut self, key: Key) -> Option<(bool, OpenSpan)> {
        let span = self.open.remove(&key)?;
        self.by_number.remove(&span.number);
        self.bytes -= span.bytes;
        let mut was_on_top = false;
        if let Some(stack) = self.stacks.get_mut(&span.thread) {
            was_on_top = stack.last() == Some(&span.number);
            stack.remove(&span.number);
        }
        if let Some(below) = self.innermost(span.thread).and_then(|below| self.open.get(&below)) {
            was_on_top &= below.begin.time_ns < span.begin.time_ns;
        }
        Some((was_on_top, span))
    }
}

/// An integer field of an event.
fn field(event: &Event, name: &str) -> Option<u64> {
    event.fields.as_ref().and_then(|fields| fields.get(name)).and_then(Value::as_u64)
}

/// The same; 0 without it.
fn number(event: &Event, name: &str) -> u64 {
    field(event, name).unwrap_or(0)
}

/// About how much memory an event takes, in bytes.
fn size(event: &Event) -> usize {
    fn of(value: &Value) -> usize {
        let more = match value {
            Value::String(bytes) | Value::Bytes(bytes, _) => bytes.len(),
            Value::Array(values) => values.iter().map(of).sum(),
            Value::Struct(members) => members.iter().map(|(_, value)| of(value)).sum(),
            Value::Variant(_, value) => of(value),
            _ => 0,
        };
        more + size_of::<Value>()
    }
    let parts = [&event.fields, &event.context, &event.stream_context];
    let members = parts.into_iter().flatten().flat_map(StructValue::iter);
    size_of::<OpenSpan>() + 128 + members.map(|(_, value)| of(value)).sum::<usize>()
}
