//! A span that has begun.

use std::collections::BTreeSet;
use std::sync::Arc;

use tracepoint_reader::{Event, StructValue, Value};

use crate::format::{Span, SpanEnd, SpanEvents};
use crate::sources::ThreadId;
use crate::times::TimeTree;

/// The guessed parent of a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Guess {
    /// There is none, or the parent was recorded.
    None,
    /// The innermost open span of the thread, with this number. It is the parent if both spans turn out to nest.
    Pending(u64),
    /// The span with this number is known to be the parent.
    Sure(u64),
}

/// Events in a span: events that name it, and events assigned to it as long as it may nest.
#[derive(Debug, Default)]
pub(super) struct Events {
    named: SpanEvents,
    guessed: SpanEvents,
}

impl Events {
    pub(super) fn of(&mut self, is_named: bool) -> &mut SpanEvents {
        if is_named { &mut self.named } else { &mut self.guessed }
    }

    /// Drops the guessed events, and returns their number.
    pub(super) fn drop_guessed(&mut self) -> u64 {
        let guessed = std::mem::take(&mut self.guessed);
        guessed.events.len() as u64 + guessed.more
    }

    /// All events in the order of their times: at most `most` of them, and the number of others.
    pub(super) fn together(self, most: usize) -> SpanEvents {
        let Self { named: mut all, guessed } = self;
        all.more += guessed.more;
        all.events.extend(guessed.events);
        all.events.sort_by_key(|event| event.time_ns);
        all.more += all.events.len().saturating_sub(most) as u64;
        all.events.truncate(most);
        all
    }
}

#[derive(Debug)]
pub(super) struct OpenSpan {
    pub(super) begin: Event,
    pub(super) name: String,
    pub(super) thread: ThreadId,
    /// The number of its begin among all begins.
    pub(super) number: u64,
    /// The id of the recorded or guessed parent.
    pub(super) parent: Option<u64>,
    /// The number of the recorded parent, if it was open at the begin.
    pub(super) recorded: Option<u64>,
    pub(super) guess: Guess,
    pub(super) parent_thread: Option<ThreadId>,
    pub(super) remote_children: Vec<u64>,
    /// Asynchronous spans whose parent it may be.
    pub(super) async_children: BTreeSet<u64>,
    /// Number of spans that ended before it and have it as guessed parent, if it nests.
    pub(super) guessed_children: u64,
    /// The time of children that ended before it: of children that name it, and of guessed ones.
    pub(super) named_ns: u64,
    pub(super) guessed_ns: u64,
    pub(super) end_channels: Arc<[u64]>,
    pub(super) is_async: bool,
    /// True if it is a poll of an asynchronous span.
    pub(super) is_poll: bool,
    /// True if it is known not to nest, or treated so.
    pub(super) is_loose: bool,
    pub(super) events: Events,
    pub(super) bytes: usize,
    /// The path of names along recorded parents, including this span.
    pub(super) path: u32,
    /// The path of its recorded parent.
    pub(super) outer_path: u32,
    /// The times of spans whose guessed parent it may be, and of spans that name it.
    pub(super) guessed_times: TimeTree,
    pub(super) named_times: TimeTree,
}

impl OpenSpan {
    pub(super) fn duration_to(&self, end: i64) -> u64 {
        u64::try_from(end.saturating_sub(self.begin.time_ns)).unwrap_or(0)
    }

    /// Its duration excluding children; with `adopts`, guessed children are excluded as well.
    pub(super) fn self_ns(&self, end: i64, adopts: bool) -> u64 {
        let children = self.named_ns.saturating_add(if adopts { self.guessed_ns } else { 0 });
        self.duration_to(end).saturating_sub(children)
    }

    /// The number of its parent, as far as known.
    pub(super) fn parent_number(&self) -> Option<u64> {
        match self.guess {
            Guess::None => self.recorded,
            Guess::Pending(parent) | Guess::Sure(parent) => Some(parent),
        }
    }

    pub(super) fn span<'a>(
        &'a self,
        id: u64,
        end: SpanEnd<'a>,
        nests: bool,
        last_ns: i64,
        inside: &'a SpanEvents,
    ) -> Span<'a> {
        let end_ns = if let SpanEnd::Ended(event, _) = end { Some(event.time_ns) } else { None };
        Span {
            name: &self.name,
            id,
            parent: self.parent,
            parent_is_guessed: self.guess != Guess::None,
            root: self.parent.unwrap_or(id),
            begin_ns: self.begin.time_ns,
            end_ns,
            last_ns,
            thread: self.thread,
            begin: Some(&self.begin),
            end,
            nests,
            path: self.path,
            self_ns: end_ns.map_or(0, |end| self.self_ns(end, nests)),
            parent_thread: self.parent_thread,
            remote_children: &self.remote_children,
            inside,
            time: None,
        }
    }
}

pub(super) fn field(event: &Event, name: &str) -> Option<u64> {
    event.fields.as_ref().and_then(|fields| fields.get(name)).and_then(Value::as_u64)
}

/// An integer field of an event; 0 if it is missing.
pub(super) fn number(event: &Event, name: &str) -> u64 {
    field(event, name).unwrap_or(0)
}

/// Approximate size of an event in memory in bytes.
pub(super) fn size(event: &Event) -> usize {
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
