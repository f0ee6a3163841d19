//! The interface of a format.

use std::io;

use serde::Serialize;
use tracepoint_reader::{Damage, Event, Loss, LossKind, SpanPart};

use crate::sources::{Sources, ThreadId};
use crate::times::TimeTree;
use crate::waits::{Cause, SpanTime};

/// The data that a format uses. Everything else is not computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Needs {
    /// True if begin and end events of spans are passed as [`Format::span`], in place of [`Format::event`].
    pub spans: bool,
    /// True if a span is passed only once its parent is known, even if the parent has to be guessed. Otherwise a span is passed at its end, and only
    /// a recorded parent is given.
    pub parents: bool,
    /// True if the time in spans is passed as [`Format::times`].
    pub times: bool,
    /// Maximum number of events inside a span of which copies are kept for [`Span::inside`]. Further ones are counted.
    pub inside: usize,
    /// What threads do (`tracectl record --waits`).
    pub threads: ThreadDetail,
}

/// How much detail about threads a format uses. Each value includes the values before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum ThreadDetail {
    /// Nothing.
    #[default]
    None,
    /// Their events are passed as [`Format::unselected`] if they are not selected.
    Events,
    /// Their states are passed as [`Format::thread_state`].
    States,
    /// The time of spans is divided: [`Span::time`].
    Spans,
    /// So are the samples of the processor (`tracectl record --samples`).
    Samples,
}

impl Needs {
    /// Events only.
    pub const EVENTS: Self =
        Self { spans: false, parents: false, times: false, inside: 0, threads: ThreadDetail::None };
    /// Spans at their end, and other events.
    pub const SLICES: Self = Self { spans: true, ..Self::EVENTS };
    /// Spans with their parents, and other events.
    pub const SPANS: Self = Self { parents: true, ..Self::SLICES };
    /// The time in spans.
    pub const TIMES: Self = Self { times: true, ..Self::SLICES };
}

/// Writes a trace in one format.
///
/// # Errors
/// The methods return the errors of the output.
pub trait Format {
    /// The data that the format uses; the same at each call.
    fn needs(&self) -> Needs;

    /// Passes the time of the first item that has one, before the item itself. Only a span whose begin is missing may begin earlier.
    fn begin(&mut self, _first_ns: i64) -> io::Result<()> {
        Ok(())
    }

    /// Passes an event, in the order of times. Begin and end events of spans are excluded if the format uses [spans](Needs::spans).
    fn event(&mut self, event: &Event, thread: ThreadId, sources: &Sources) -> io::Result<()>;

    /// Passes an event of the kernel about a thread that is not to be exported, in the order of times with the other events, if the format uses
    /// [threads](Needs::threads). It is not counted.
    fn unselected(&mut self, _event: &Event, _thread: ThreadId, _sources: &Sources) -> io::Result<()> {
        Ok(())
    }

    /// Passes the begin and the end event of each span, in the order of times, if the format uses [spans](Needs::spans). The span follows later.
    fn span_event(&mut self, _event: &Event, _part: SpanPart, _thread: ThreadId, _sources: &Sources) -> io::Result<()> {
        Ok(())
    }

    /// Passes a span, in the order of span ends; open spans follow at the end of the trace. With [parents](Needs::parents), a span is passed once all
    /// spans that began before it are decided.
    fn span(&mut self, span: &Span<'_>, sources: &Sources) -> io::Result<()>;

    /// Passes the time spent in spans of a process (an index for [`Sources::process`]), if the format uses [times](Needs::times). The paths in the
    /// tree are relative to the path `outer` (an index for [`Sources::path`]). A path may be passed several times.
    fn times(&mut self, _process: u32, _outer: u32, _times: TimeTree, _sources: &Sources) -> io::Result<()> {
        Ok(())
    }

    /// Passes a state of a thread, in the order of times of this thread, if the format uses [states](ThreadDetail::States). It is passed once its cause is
    /// final, which can be later than its end; states that are unknown are not passed.
    fn thread_state(&mut self, _state: &ThreadState<'_>, _sources: &Sources) -> io::Result<()> {
        Ok(())
    }

    /// Events or packets that are missing.
    fn loss(&mut self, loss: &LossReport<'_>, sources: &Sources) -> io::Result<()>;

    /// Passes an unreadable part of the trace.
    fn damage(&mut self, damage: &Damage) -> io::Result<()>;

    /// Adds what the format has left out to the summary, before the end.
    fn count(&self, _summary: &mut Summary) {}

    /// Ends the trace: writes remaining data, and flushes.
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

    fn unselected(&mut self, event: &Event, thread: ThreadId, sources: &Sources) -> io::Result<()> {
        (**self).unselected(event, thread, sources)
    }

    fn span_event(&mut self, event: &Event, part: SpanPart, thread: ThreadId, sources: &Sources) -> io::Result<()> {
        (**self).span_event(event, part, thread, sources)
    }

    fn span(&mut self, span: &Span<'_>, sources: &Sources) -> io::Result<()> {
        (**self).span(span, sources)
    }

    fn times(&mut self, process: u32, outer: u32, times: TimeTree, sources: &Sources) -> io::Result<()> {
        (**self).times(process, outer, times, sources)
    }

    fn thread_state(&mut self, state: &ThreadState<'_>, sources: &Sources) -> io::Result<()> {
        (**self).thread_state(state, sources)
    }

    fn loss(&mut self, loss: &LossReport<'_>, sources: &Sources) -> io::Result<()> {
        (**self).loss(loss, sources)
    }

    fn damage(&mut self, damage: &Damage) -> io::Result<()> {
        (**self).damage(damage)
    }

    fn count(&self, summary: &mut Summary) {
        (**self).count(summary);
    }

    fn finish(&mut self, summary: &Summary, sources: &Sources) -> io::Result<()> {
        (**self).finish(summary, sources)
    }
}

/// The end of a span.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum SpanEnd<'a> {
    /// The span was ended by this event on this thread.
    Ended(&'a Event, ThreadId),
    /// The span was still open at the end of the trace.
    Open,
    /// The span was given up, because too many spans were open.
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
    /// The recorded `parent_id`. If none was recorded and the format uses [parents](Needs::parents), the parent is guessed: the innermost span that
    /// was open on the thread when this one began, if both nest and have ended. For an asynchronous span that began directly in a poll, the parent is
    /// the span of that poll.
    pub parent: Option<u64>,
    /// True if the parent is guessed.
    pub parent_is_guessed: bool,
    /// The id of the outermost ancestor; the span's own id without a parent. Known if the format uses [parents](Needs::parents).
    pub root: u64,
    /// Begin in nanoseconds since the epoch.
    pub begin_ns: i64,
    /// End in nanoseconds since the epoch; `None` if unknown.
    pub end_ns: Option<i64>,
    /// Time of the latest event of the trace so far, in nanoseconds since the epoch. A span with an unknown end was open at least until then.
    pub last_ns: i64,
    /// The thread on which the span began; if its begin is missing, the thread on which it ended.
    pub thread: ThreadId,
    /// The begin event; `None` if it is missing. The begin time is then computed from the duration.
    pub begin: Option<&'a Event>,
    /// The end of the span.
    pub end: SpanEnd<'a>,
    /// True if the span began and ended on one thread, and any two such spans of the thread are either nested or disjoint. They can be drawn as a
    /// stack.
    pub nests: bool,
    /// The names from the root to this span, as an index for [`Sources::path`]. Known if the format uses [parents](Needs::parents).
    pub path: u32,
    /// Duration in nanoseconds, excluding the children that ended before the span. 0 if the children took longer in total, as on several threads, or
    /// if the end is unknown.
    pub self_ns: u64,
    /// The parent's thread, if the parent is open and on another thread.
    pub parent_thread: Option<ThreadId>,
    /// The ids of the first children that began on other threads.
    pub remote_children: &'a [u64],
    /// The events inside the span.
    pub inside: &'a SpanEvents,
    /// How its time divides, if the format uses [the time of spans](ThreadDetail::Spans).
    pub time: Option<&'a SpanTime>,
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

/// Events recorded inside a span: events with its `span_id`; and, if it nests and has ended, other events on its thread while it was the innermost
/// span. The latter are guessed.
#[derive(Clone, Debug, Default)]
pub struct SpanEvents {
    /// The first of them.
    pub events: Vec<Event>,
    /// Number of further events.
    pub more: u64,
}

/// A period of a thread: it ran, or waited for one cause.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ThreadState<'a> {
    /// The thread: of the traced process, or of the kernel's trace of the process, which has the same [`shown_pid`](crate::Process::shown_pid).
    pub thread: ThreadId,
    /// Its name in the events of the kernel.
    pub thread_name: Option<&'a str>,
    /// Begin in nanoseconds since the epoch.
    pub begin_ns: i64,
    /// End in nanoseconds since the epoch; if the state continues, the end of the trace.
    pub end_ns: i64,
    /// What it did.
    pub cause: Cause,
    /// The system call during the wait.
    pub call: Option<&'a str>,
    /// The name and the id of the thread that ended the wait.
    pub woken_by: Option<&'a str>,
}

/// A loss, and its known extent.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct LossReport<'a> {
    /// The loss.
    pub loss: &'a Loss,
    /// The thread of the stream with the loss; the process, if the stream does not belong to a thread.
    pub thread: ThreadId,
    /// Number of events, if known.
    pub events: Option<u64>,
    /// Number of packets, if complete packets are missing and their number is known.
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

/// Counts of an export. `events` = 2 × `spans_closed` + `spans_open` + `spans_forgotten` + `spans_without_begin` + `others`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Summary {
    /// Events of the trace that were exported.
    pub events: u64,
    /// Events that neither begin nor end a span; all events, if the format does not use spans.
    pub others: u64,
    /// Those of the other events that are outside of all spans, if the format writes events as parts of spans.
    pub outside: u64,
    /// Spans with both events.
    pub spans_closed: u64,
    /// Spans that were open at the end of the trace.
    pub spans_open: u64,
    /// Spans given up because too many were open.
    pub spans_forgotten: u64,
    /// Spans with only the end event.
    pub spans_without_begin: u64,
    /// Events lost by the tracer, as far as their number is known.
    pub lost_events: u64,
    /// Losses with an unknown number of events.
    pub losses_of_unknown_size: u64,
    /// Spans with a guessed parent: none was recorded, and they lie within another span on their thread.
    pub guessed_parents: u64,
    /// Spans no longer considered as guessed parents, because waiting for them took too much memory.
    pub parents_given_up: u64,
    /// States of threads that were passed.
    pub thread_states: u64,
    /// True if the states of some threads are not known, because there are more than 262,144 threads.
    pub has_further_threads: bool,
    /// Spans that are not in the stacks of waits, because too many were open: 262,144, or 512 of one thread.
    pub spans_left_out: u64,
    /// Unreadable parts of the trace.
    pub damage: u64,
    /// Times of the first and the last event, in nanoseconds since the epoch.
    pub range: Option<(i64, i64)>,
}
