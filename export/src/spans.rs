//! Pairs begin and end events of spans by process and span id, and determines their parents.
//!
//! Open spans are kept until they end: at most [`MAX_OPEN`] spans and about [`MAX_BYTES`]. Beyond these limits, the oldest one is given up.
//!
//! The spans of a thread form a stack as long as each span ends before the ones below it. A span nests if it ends at the top of the stack of the
//! thread on which it began. If it ends while others are above it, neither it nor those nest: they overlap partially. So two spans that nest never
//! overlap partially. (Two spans that begin in the same nanosecond do not nest, because viewers sort by time.) A span whose polls are recorded as
//! spans (`async span`) is never on the stack, because it does not run where it begins. Its polls are scopes of their thread; a span that partially
//! overlaps a poll does not nest, but the poll still does.
//!
//! The parent of a span without a recorded parent is guessed: the innermost span on the thread at its begin, if both nest. Whether that span nests is
//! known only when it ends. So a format that needs parents receives a span once all spans that began before it are decided. If the waiting spans take
//! too much memory, the oldest undecided one is treated as not nesting. The parent of an `async span` that begins directly in a poll is the span of
//! the poll, wherever it ends.
//!
//! A missing end event must not make its span the parent of all following ones. So a span that has not ended is never a guessed parent, and open
//! spans leave the stack when events of their thread are lost in the channel that records their ends.

mod decisions;
mod open;
mod pending;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::sync::Arc;

use tracepoint_reader::Event;

use crate::format::{Needs, Span, SpanEnd, SpanEvents};
use crate::sources::{Sources, ThreadId};
use crate::times::TimeTree;
use open::{Events, Guess, OpenSpan, field, number, size};
use pending::{End, PendingSpan, PendingSpans};

/// Maximum number of open spans.
const MAX_OPEN: usize = 1 << 18;
/// Maximum estimated size in bytes of the events of open and waiting spans.
const MAX_BYTES: usize = 64 << 20;
/// Maximum number of children on other threads that are linked to their parent.
const MAX_REMOTE: usize = 64;

/// A process and the id of a span.
type Key = (u32, u64);

/// Properties of spans given by the class of their begin event.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kind<'a> {
    /// `provider:span`.
    pub(crate) name: &'a str,
    /// True if its polls are spans themselves.
    pub(crate) is_async: bool,
    /// True if it is such a poll.
    pub(crate) is_poll: bool,
    /// True if a span without `parent_id` has no parent, as in `tracing`.
    pub(crate) is_root_without_parent: bool,
    /// The channels that record its end event, by stream class id.
    pub(crate) end_channels: &'a Arc<[u64]>,
}

/// Receives spans and times.
pub(crate) trait Output {
    fn span(&mut self, span: &Span<'_>, sources: &Sources) -> io::Result<()>;
    /// Receives the times of a process below a path.
    fn times(&mut self, process: u32, path: u32, times: TimeTree, sources: &Sources) -> io::Result<()>;
}

/// Counts of guesses, and of failed guesses.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Guesses {
    /// Spans with a guessed parent.
    pub(crate) parents: u64,
    /// Spans treated as not nesting, because too much data waited for them.
    pub(crate) given_up: u64,
    /// Events assigned to a span that turned out not to nest.
    pub(crate) outside: u64,
}

/// The open spans, and the spans that wait for a decision.
#[derive(Debug)]
pub(crate) struct Spans {
    needs: Needs,
    open: HashMap<Key, OpenSpan>,
    /// The open spans by begin number.
    by_number: BTreeMap<u64, Key>,
    /// Per thread: spans that began there, except those that are known to be asynchronous or that ended unseen.
    stacks: HashMap<ThreadId, BTreeSet<u64>>,
    /// Subset of the stacks: spans that may still nest. Searched at each end; each span leaves it once.
    firm: HashMap<ThreadId, BTreeSet<u64>>,
    /// Spans for which it is undecided whether they have a guessed parent, or are one.
    undecided: BTreeSet<u64>,
    pending: PendingSpans,
    begun: u64,
    bytes: usize,
    max_open: usize,
    /// Number of paths whose times are kept with open spans.
    kept_paths: usize,
    guesses: Guesses,
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
            firm: HashMap::new(),
            undecided: BTreeSet::new(),
            pending: PendingSpans::default(),
            begun: 0,
            bytes: 0,
            max_open: MAX_OPEN,
            kept_paths: 0,
            guesses: Guesses::default(),
            last_ns: 0,
        }
    }

    /// Notes the time of an event: the trace lasts at least until then.
    pub(crate) fn goes_on_until(&mut self, time_ns: i64) {
        self.last_ns = self.last_ns.max(time_ns);
    }

    /// The time of the last event.
    pub(crate) fn last_ns(&self) -> i64 {
        self.last_ns
    }

    pub(crate) fn set_max_open(&mut self, spans: usize) {
        self.max_open = spans.clamp(1, MAX_OPEN);
    }

    pub(crate) fn guesses(&self) -> Guesses {
        self.guesses
    }

    /// Returns whether parents are guessed at all.
    fn guesses_parents(&self) -> bool {
        self.needs.parents || self.needs.times
    }

    /// Processes the begin of a span.
    pub(crate) fn begin(
        &mut self,
        event: &Event,
        kind: Kind<'_>,
        thread: ThreadId,
        sources: &mut Sources,
        out: &mut impl Output,
    ) -> io::Result<()> {
        let key = (sources.thread(thread).process, number(event, "span_id"));
        if self.open.contains_key(&key) {
            self.close(key, End::Forgotten, false, sources, out)?;
        }
        let recorded = Some(number(event, "parent_id")).filter(|id| *id != 0);
        let may_guess = recorded.is_none() && !kind.is_root_without_parent && self.guesses_parents();
        let (mut parent, mut guess) = (recorded, Guess::None);
        let begun = self.begun;
        if let Some((id, innermost)) = self.innermost(thread).filter(|_| may_guess) {
            (parent, guess) = (Some(id), Guess::Pending(innermost.number));
            if kind.is_async {
                innermost.async_children.insert(begun);
            }
        }
        let (mut parent_number, mut outer_path, mut parent_thread) = (None, 0, None);
        if let Some(parent) = recorded.and_then(|id| self.open.get_mut(&(key.0, id))) {
            (parent_number, outer_path) = (Some(parent.number), parent.path);
            if parent.thread != thread {
                parent_thread = Some(parent.thread);
                if parent.remote_children.len() < MAX_REMOTE {
                    parent.remote_children.push(key.1);
                }
            }
        }
        let bytes = size(event);
        let span = OpenSpan {
            begin: event.clone(),
            name: kind.name.to_owned(),
            thread,
            number: begun,
            parent,
            recorded: parent_number,
            guess,
            parent_thread,
            remote_children: Vec::new(),
            async_children: BTreeSet::new(),
            guessed_children: 0,
            named_ns: 0,
            guessed_ns: 0,
            end_channels: Arc::clone(kind.end_channels),
            is_async: kind.is_async,
            is_poll: kind.is_poll,
            is_loose: false,
            events: Events::default(),
            bytes,
            path: if self.needs.times { sources.path_below(outer_path, kind.name) } else { 0 },
            outer_path,
            guessed_times: TimeTree::default(),
            named_times: TimeTree::default(),
        };
        self.begun += 1;
        self.bytes += bytes;
        if self.needs.parents {
            if let Some(parent) = span.parent_number() {
                self.pending.link(parent);
            }
            if !kind.is_async || guess != Guess::None {
                self.undecided.insert(begun);
            }
        }
        self.open.insert(key, span);
        self.by_number.insert(begun, key);
        if !kind.is_async {
            self.stacks.entry(thread).or_default().insert(begun);
            self.firm.entry(thread).or_default().insert(begun);
        }
        self.make_room(sources, out)
    }

    /// Processes the end of a span. If its begin is missing, it is computed from the duration.
    pub(crate) fn end(
        &mut self,
        event: &Event,
        name: &str,
        thread: ThreadId,
        sources: &mut Sources,
        out: &mut impl Output,
    ) -> io::Result<()> {
        let key = (sources.thread(thread).process, number(event, "span_id"));
        let Some(open) = self.open.get(&key).filter(|open| open.name == name) else {
            return self.end_without_begin(event, name, thread, sources, out);
        };
        let (number, was_loose, is_poll) = (open.number, open.is_loose, open.is_poll);
        let stack = self.stacks.get(&thread).filter(|_| open.thread == thread && !open.is_async);
        let is_innermost = stack.is_none_or(|stack| stack.range(number + 1..).next().is_none());
        let is_on_stack = stack.is_some_and(|stack| stack.contains(&number));
        let firm = stack.and_then(|_| self.firm.get(&thread));
        let above: Vec<_> = firm.iter().flat_map(|firm| firm.range(number + 1..)).copied().collect();
        let mut nests = is_on_stack && !was_loose && (is_poll || is_innermost);
        for number in above {
            // A poll that began after a span across polls remains a scope. In all other cases the end event of the poll is missing.
            if !(was_loose && self.open_by_number(number).is_some_and(|open| open.is_poll)) {
                self.loosen(number, sources, out)?;
            }
        }
        let Some((below_ns, mut span)) = self.remove(key) else { return Ok(()) };
        nests &= below_ns.is_none_or(|below_ns| below_ns < span.begin.time_ns);
        if !(nests || span.is_async && self.is_inside_parent(&span, thread)) {
            self.give_up_guess(&mut span);
        }
        let duration = span.duration_to(event.time_ns);
        if let Some(parent) = span.recorded.and_then(|parent| self.open_by_number(parent)) {
            parent.named_ns = parent.named_ns.saturating_add(duration);
        } else if let Guess::Pending(parent) = span.guess
            && let Some(parent) = self.open_by_number(parent)
        {
            parent.guessed_ns = parent.guessed_ns.saturating_add(duration);
            parent.guessed_children += 1;
            parent.async_children.remove(&number);
        }
        self.decide_children(&mut span, nests, sources);
        if self.needs.times {
            self.add_times(&mut span, Some(event.time_ns), nests, sources, out)?;
        }
        let end = End::Event(Box::new(event.clone()), thread);
        self.show(PendingSpan { span, id: key.1, end, nests, last_ns: self.last_ns }, sources, out)?;
        self.make_room(sources, out)
    }

    /// Processes the end of a span that is not open.
    fn end_without_begin(
        &mut self,
        event: &Event,
        name: &str,
        thread: ThreadId,
        sources: &mut Sources,
        out: &mut impl Output,
    ) -> io::Result<()> {
        let duration = number(event, "duration_ns");
        let begin_ns = event.time_ns.saturating_sub(i64::try_from(duration).unwrap_or(i64::MAX));
        // Assume that it began on this thread: spans that began inside it overlap with it.
        let began_inside = |number: &&u64| {
            let open = self.by_number.get(number).and_then(|key| self.open.get(key));
            open.is_none_or(|open| open.begin.time_ns > begin_ns)
        };
        let firm = self.firm.get(&thread).into_iter().flatten();
        let inside: Vec<_> = firm.rev().take_while(began_inside).copied().collect();
        for number in inside {
            if self.open_by_number(number).is_some_and(|open| !open.is_poll) {
                self.loosen(number, sources, out)?;
            }
        }
        if self.needs.times {
            let times = TimeTree::of(name, duration, TimeTree::default());
            out.times(sources.thread(thread).process, 0, times, sources)?;
        }
        let (id, inside) = (number(event, "span_id"), SpanEvents::default());
        let span = Span {
            name,
            id,
            parent: None,
            parent_is_guessed: false,
            root: id,
            begin_ns,
            end_ns: Some(event.time_ns),
            last_ns: self.last_ns,
            thread,
            begin: None,
            end: SpanEnd::Ended(event, thread),
            nests: false,
            path: sources.path_below(0, name),
            self_ns: duration,
            parent_thread: None,
            remote_children: &[],
            inside: &inside,
            time: None,
        };
        out.span(&span, sources)
    }

    /// Processes an event that neither begins nor ends a span: keeps it with the span that contains it. Returns whether there may be one. An event
    /// with a `span_id` belongs to that span, or to none if the id is 0.
    pub(crate) fn inside(&mut self, event: &Event, thread: ThreadId, sources: &Sources) -> bool {
        let named = field(event, "span_id");
        let (bytes, most) = (size(event), self.needs.inside);
        let has_room = self.bytes + bytes <= MAX_BYTES;
        let span = match named {
            Some(id) => self.open.get_mut(&(sources.thread(thread).process, id)).filter(|_| id != 0),
            None => self.innermost(thread).map(|(_, span)| span),
        };
        let Some(span) = span else { return false };
        let inside = span.events.of(named.is_some());
        if inside.events.len() < most && has_room {
            inside.events.push(event.clone());
            span.bytes += bytes;
            self.bytes += bytes;
        } else {
            inside.more += 1;
        }
        true
    }

    /// Processes a loss of a thread's events in a channel. The lost events may include the ends of open spans recorded in this channel, and of open
    /// spans with unknown end channels.
    pub(crate) fn interrupt(
        &mut self,
        thread: ThreadId,
        channel: u64,
        sources: &mut Sources,
        out: &mut impl Output,
    ) -> io::Result<()> {
        let stack: Vec<_> = self.stacks.get(&thread).into_iter().flatten().copied().collect();
        for number in stack {
            let may_have_ended =
                |open: &mut OpenSpan| open.end_channels.is_empty() || open.end_channels.contains(&channel);
            if self.open_by_number(number).is_some_and(may_have_ended) {
                self.loosen(number, sources, out)?;
                self.stacks.entry(thread).or_default().remove(&number);
            }
        }
        self.show_decided(sources, out)
    }

    /// Ends the trace: closes the open spans in the order of their begins.
    pub(crate) fn finish(&mut self, sources: &mut Sources, out: &mut impl Output) -> io::Result<()> {
        let open: Vec<_> = self.by_number.iter().map(|(number, key)| (*number, *key)).collect();
        let mut nest = Vec::new();
        for (number, key) in &open {
            let Some(span) = self.open.get(key) else { continue };
            let is_on_stack = self.stacks.get(&span.thread).is_some_and(|stack| stack.contains(number));
            nest.push(is_on_stack && !span.is_loose);
            self.loosen(*number, sources, out)?;
        }
        for ((_, key), nests) in open.into_iter().zip(nest) {
            self.close(key, End::Open, nests, sources, out)?;
        }
        Ok(())
    }

    fn leave_firm(&mut self, span: &OpenSpan) {
        if let Some(firm) = self.firm.get_mut(&span.thread) {
            firm.remove(&span.number);
        }
    }

    fn open_by_number(&mut self, number: u64) -> Option<&mut OpenSpan> {
        self.open.get_mut(self.by_number.get(&number)?)
    }

    /// The innermost span of a thread, and its id; `None` if it is known not to nest.
    fn innermost(&mut self, thread: ThreadId) -> Option<(u64, &mut OpenSpan)> {
        let number = self.stacks.get(&thread)?.last()?;
        let key = self.by_number.get(number)?;
        self.open.get_mut(key).filter(|span| !span.is_loose).map(|span| (key.1, span))
    }

    /// Removes a span, and returns the begin time of the span below it on its thread's stack.
    fn remove(&mut self, key: Key) -> Option<(Option<i64>, OpenSpan)> {
        let span = self.open.remove(&key)?;
        self.by_number.remove(&span.number);
        self.bytes -= span.bytes;
        let mut below = None;
        if let Some(stack) = self.stacks.get_mut(&span.thread) {
            stack.remove(&span.number);
            below = stack.last().copied();
        }
        self.leave_firm(&span);
        let below_ns = below.and_then(|below| self.open_by_number(below)).map(|below| below.begin.time_ns);
        Some((below_ns, span))
    }
}
