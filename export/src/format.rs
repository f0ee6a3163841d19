//! What a format is given.

use std::io;

use serde::Serialize;
use tracepoint_reader::{Damage, Event, Loss, LossKind};

use crate::sources::{Sources, ThreadId};
use crate::times::TimeTree;

/// What a format makes use of; the rest is not computed for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Needs {
    /// Whether the events that begin and end spans come as [`Format::span`], in place of [`Format::event`].
    pub spans: bool,
    /// Whether a span comes only when its parent is known, also if that has to be guessed. Without it, a span comes at its end, and has no parent
    /// but a recorded one.
    pub parents: bool,
    /// Whether the time in spans comes as [`Format::times`].
    pub times: bool,
    /// Of how many events inside a span copies are kept for [`Span::inside`]; others are counted.
    pub inside: usize,
}

impl Needs {
    /// Only events.
    pub const EVENTS: Self = Self { spans: false, parents: false, times: false, inside: 0 };
    /// Spans at their ends, and other events.
    pub const SLICES: Self = Self { spans: true, ..Self::EVENTS };
    /// Spans with their parents, and other events.
    pub const SPANS: Self = Self { parents: true, ..Self::SLICES };
    /// The time in spans.
    pub const TIMES: Self = Self { times: true, ..Self::SLICES };
}

/// Writes a trace in one format.
///
/// # Errors
/// The methods return those of the output.
pub trait Format {
    /// What it makes use of; the same at each call.
    fn needs(&self) -> Needs;

    /// The time of the first item that has one, before that item is given. Only a span whose begin is missing may have begun earlier.
    fn begin(&mut self, _first_ns: i64) -> io::Result<()> {
        Ok(())
    }

    /// An event, in the order of times; without those of spans, if the format takes [spans](Needs::spans).
    fn event(&mut self, event: &Event, thread: ThreadId, sources: &Sources) -> io::Result<()>;

    /// A span: in the order of ends, and those that have not ended at last; with [parents](Needs::parents), when all is known of those that
    /// began before it.
    fn span(&mut self, span: &Span<'_>, sources: &Sources) -> io::Result<()>;

    /// The time that was spent in spans of a process (an index for [`Sources::process`]), if the format takes [times](Needs::times): below the
    /// path `outer` (an index for [`Sources::path`]), on the paths of the tree. The same path may come again.
    fn times(&mut self, _process: u32, _outer: u32, _times: TimeTree, _sources: &Sources) -> io::Result<()> {
        Ok(())
    }

    /// Events or packets that are missing.
    fn loss(&mut self, loss: &LossReport<'_>, sources: &Sources) -> io::Result<()>;

    /// A part of the trace that cannot be read.
    fn damage(&mut self, damage: &Damage) -> io::Result<()>;

    /// The end of the trace: writes what is left, and flushes.
    fn finish(&mut self, summary: &Summary, sources: &Sources) -> io::Result<()>;
}

impl<F: Format + ?Sized> Format for Box<F> {
    fn needs(&self) -> Needs {
        (**self).needs()
    }

    fn begin(&mut self, first_ns: i64) -> io::Result<()> {
        (**self).begin(first_ns)
    }

    fn event(&mut self, event: &Event, thread: ThreadId, sources: &Sources) -> io::Result<()> {
        (**self).event(event, thread, sources)
    }

    fn span(&mut self, span: &Span<'_>, sources: &Sources) -> io::Result<()> {
        (**self).span(span, sources)
    }

    fn times(&mut self, process: u32, outer: u32, times: TimeTree, sources: &Sources) -> io::Result<()> {
        (**self).times(process, outer, times, sources)
    }

    fn loss(&mut self, loss: &LossReport<'_>, sources: &Sources) -> io::Result<()> {
        (**self).loss(loss, sources)
    }

    fn damage(&mut self, damage: &Damage) -> io::Result<()> {
        (**self).damage(damage)
    }

    fn finish(&mut self, summary: &Summary, sources: &Sources) -> io::Result<()> {
        (**self).finish(summary, sources)
    }
}

/// How a span ended.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum SpanEnd<'a> {
    /// By this event, on this thread.
    Ended(&'a Event, ThreadId),
    /// It had not ended when the trace did.
    Open,
    /// So many spans were open that it was no longer waited for.
    Forgotten,
}

/// A span.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Span<'a> {
    /// `provider:span`.
    pub name: &'a str,
    /// Its `span_id`, unique in its process.
    pub id: u64,
    /// The `parent_id` that was recorded. Without one, and if the format takes [parents](Needs::parents), it is guessed: the innermost span that
    /// was open on the thread when this one began, if both nest and have ended. An asynchronous span that began directly in a poll is a child
    /// of that.
    pub parent: Option<u64>,
    /// Whether the parent is guessed.
    pub parent_is_guessed: bool,
    /// The span at the upper end of the chain of parents; its own id without one. Known if the format takes [parents](Needs::parents).
    pub root: u64,
    /// When it began, in nanoseconds since the epoch.
    pub begin_ns: i64,
    /// When it ended, likewise; `None` if that is not known.
    pub end_ns: Option<i64>,
    /// The time of the last event of the trace so far, likewise: a span whose end is not known was open until then.
    pub last_ns: i64,
    /// The thread on which it began; on which it ended, if its begin is missing.
    pub thread: ThreadId,
    /// The event that began it; `None` if it is missing: then the duration tells when it began.
    pub begin: Option<&'a Event>,
    /// How it ended.
    pub end: SpanEnd<'a>,
    /// Whether it began and ended on one thread, and the spans of that thread of which this is said are either one within the other or
    /// apart: so that they can be drawn as a stack.
    pub nests: bool,
    /// The names from the root to this span, as an index for [`Sources::path`]. Known if the format takes [parents](Needs::parents).
    pub path: u32,
    /// Its duration without those of the children that ended before it, in nanoseconds; 0 if they took longer together, as on several threads,
    /// or if its end is not known.
    pub self_ns: u64,
    /// The thread of its parent, if the parent is open and on another thread.
    pub parent_thread: Option<ThreadId>,
    /// Children that began on other threads, by id; the first of them.
    pub remote_children: &'a [u64],
    /// Events inside it.
    pub inside: &'a Inside,
}

impl<'a> Span<'a> {
    /// The event that ended it.
    pub fn end_event(&self) -> Option<&'a Event> {
        match self.end {
            SpanEnd::Ended(event, _) => Some(event),
            _ => None,
        }
    }
}

/// Events that were recorded inside a span: those that name it by `span_id`, and, if it nests and has ended, others of its thread while it was the
/// innermost. The latter are guessed.
#[derive(Clone, Debug, Default)]
pub struct Inside {
    /// The first of them.
    pub events: Vec<Event>,
    /// How many more there were.
    pub more: u64,
}

/// What is missing, and how much of it is known.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct LossReport<'a> {
    /// The loss.
    pub loss: &'a Loss,
    /// The thread whose stream it is; that of the process, if the stream is not that of a thread.
    pub thread: ThreadId,
    /// The number of events, if it is known.
    pub events: Option<u64>,
    /// The number of packets, if whole packets are missing, and it is known.
    pub packets: Option<u64>,
}

impl<'a> LossReport<'a> {
    pub(crate) fn new(loss: &'a Loss, thread: ThreadId) -> Self {
        let (events, packets) = match loss.kind {
            LossKind::Events(events) => (events, None),
            LossKind::Packets { packets, events } => (events, packets),
            _ => (None, None),
        };
        Self { loss, thread, events, packets }
    }
}

/// What was exported. `events` = 2 × `spans_closed` + `spans_open` + `spans_forgotten` + `spans_without_begin` + `others`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Summary {
    /// Events of the trace that were given to the format.
    pub events: u64,
    /// Events that neither begin nor end a span; all events, if the format takes no spans.
    pub others: u64,
    /// Those among them that are in no span, if the format has them as part of spans.
    pub outside: u64,
    /// Spans of which both events are there.
    pub spans_closed: u64,
    /// Spans that had not ended at the end of the trace.
    pub spans_open: u64,
    /// Spans that were no longer waited for, because too many were open.
    pub spans_forgotten: u64,
    /// Spans of which only the last event is there.
    pub spans_without_begin: u64,
    /// Events that the tracer lost, as far as their number is known.
    pub lost_events: u64,
    /// Losses whose number of events is not known.
    pub losses_of_unknown_size: u64,
    /// Spans whose parent is guessed, because none was recorded and they lie within another one on their thread.
    pub guessed_parents: u64,
    /// Spans that were not waited for as guessed parents, because that took too much memory.
    pub parents_given_up: u64,
    /// Parts of the trace that cannot be read.
    pub damage: u64,
    /// The times of the first and the last event, in nanoseconds since the epoch.
    pub range: Option<(i64, i64)>,
}
