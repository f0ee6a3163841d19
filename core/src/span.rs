//! Spans: operations with a beginning, an end and a duration, recorded as two events.
//!
//! `span request(…)` in [`define_trace!`](crate::define_trace) declares the tracepoints `request_begin` and `request_end`, and the type
//! `request`, whose path [`span!`](crate::span!) takes to begin a span. They share one key: the sites at both ends are on while
//! either event is used, so that the end knows the begin time, whichever of the two is recorded.
//!
//! ```text
//!   span!(request(7)) ─off─▶ Span without an id ──────────────────────────────▶ dropped: nothing
//!         │ on                                                                     ▲ off
//!         ▼                                                                        │
//!   id, clock, request_begin ─▶ Span with id and time ─▶ dropped, or ended ─on─▶ clock, request_end with the duration
//! ```
//!
//! Each end reads the clock once: the time of the event is the one that the duration is computed from ([`At`](crate::__macro_support::At)).
//!
//! The state of a span belongs to its owner. Threads have no current span, because it would have to be maintained while spans are off. Nested
//! spans of a thread nest in time; if that does not determine the parent, the site must name it.

mod future;
mod id;

pub use future::{FutureExt, Traced};
#[doc(hidden)]
pub use future::{once, traced_by};
pub use id::SpanId;

use std::fmt;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::num::NonZeroU64;
use tracepoint_ring::clock;

/// The outcome of a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[non_exhaustive]
pub enum Outcome {
    /// Success.
    Ok = 0,
    /// An error: passed to [`Span::end`], or returned as `Err` by a function with `#[traced(err)]`.
    Error = 1,
    /// The thread was unwinding because of a panic.
    Panicked = 2,
    /// The future of the span was dropped before it was ready.
    Cancelled = 3,
}

/// The data that a probe of a span's first event receives.
#[derive(Clone, Copy, Debug)]
pub struct Begin {
    id: SpanId,
    parent: SpanId,
    time: u64,
}

impl Begin {
    /// Creates the data with a new id and the current time. Called by the macros only.
    #[doc(hidden)]
    #[inline]
    pub fn new(parent: SpanId) -> Self {
        Self { id: SpanId::next(), parent, time: clock::now() }
    }

    /// The id of the span.
    pub const fn id(self) -> SpanId {
        self.id
    }

    /// The parent given for the span, or [`SpanId::NONE`].
    pub const fn parent(self) -> SpanId {
        self.parent
    }

    /// The time of the event, in ns on the [clock].
    #[inline(always)]
    pub const fn time(self) -> u64 {
        self.time
    }
}

/// The data that a probe of a span's last event receives.
#[derive(Clone, Copy, Debug)]
pub struct End {
    id: SpanId,
    time: u64,
    duration: u64,
    outcome: Outcome,
}

impl End {
    /// The id of the span.
    pub const fn id(self) -> SpanId {
        self.id
    }

    /// The time of the event, in ns on the [clock].
    #[inline(always)]
    pub const fn time(self) -> u64 {
        self.time
    }

    /// The time since the span began, in ns.
    pub const fn duration(self) -> u64 {
        self.duration
    }

    /// The outcome of the span.
    pub const fn outcome(self) -> Outcome {
        self.outcome
    }
}

/// The type of a span. Implemented by the macros.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a span",
    label = "not declared by `span {Self}(…)`",
    note = "declare it in `define_trace!`: `span name(argument: Type) {{ field: type = value }}`"
)]
pub trait SpanType: 'static {
    /// A guard that lives during a poll of a future in such a span: a span of its own if this one was declared by `async span`.
    #[doc(hidden)]
    type Poll;
    /// Returns whether the sites are on. Each inlined call is a site.
    #[doc(hidden)]
    fn is_on() -> bool;
    /// Fires the last event.
    #[doc(hidden)]
    fn fire_end(end: End);
    /// Begins a poll.
    #[doc(hidden)]
    fn poll(parent: SpanId) -> Self::Poll;
}

/// A span that was begun by [`span!`](crate::span!), and ends when it is dropped.
///
/// It may be moved to another thread and end there. A span that began while its events were off never fires its last event, and neither does a span
/// that ends while they are off.
#[must_use = "a span ends when it is dropped: bind it, `let _span = span!(…);`"]
pub struct Span<S: SpanType> {
    open: Option<Open>,
    ty: PhantomData<fn() -> S>,
}

/// A span that began while its events were on.
#[derive(Clone, Copy)]
struct Open {
    id: NonZeroU64,
    begun: u64,
}

impl<S: SpanType> Span<S> {
    /// A span that fires nothing. [`span!`](crate::span!) returns it while the span's events are off.
    #[inline(always)]
    pub const fn off() -> Self {
        Self { open: None, ty: PhantomData }
    }

    /// Called by the macros only.
    #[doc(hidden)]
    #[inline(always)]
    pub fn begun(begin: Begin) -> Self {
        let open = NonZeroU64::new(begin.id.get()).map(|id| Open { id, begun: begin.time });
        Self { open, ty: PhantomData }
    }

    /// The id, to name this span as a parent; [`SpanId::NONE`] if it began while its events were off.
    #[inline]
    pub fn id(&self) -> SpanId {
        self.open.map_or(SpanId::NONE, |open| SpanId::of(open.id))
    }

    /// Ends the span with an outcome. Without this call, the drop of a span gives it the outcome [`Panicked`](Outcome::Panicked) if its thread is
    /// unwinding, otherwise [`Ok`](Outcome::Ok).
    #[inline(always)]
    pub fn end(self, outcome: Outcome) {
        // A drop would be a further site.
        ManuallyDrop::new(self).close(Some(outcome));
    }

    /// Ends the span. A later drop fires nothing.
    #[inline(always)]
    fn close(&mut self, outcome: Option<Outcome>) {
        let open = self.open.take();
        if S::is_on() {
            // By value, so that the span can be in registers.
            end::<S>(open, outcome);
        }
    }
}

impl<S: SpanType> Drop for Span<S> {
    #[inline(always)]
    fn drop(&mut self) {
        if S::is_on() {
            end::<S>(self.open, None);
        }
    }
}

impl<S: SpanType> From<&Span<S>> for SpanId {
    fn from(span: &Span<S>) -> Self {
        span.id()
    }
}

impl<S: SpanType> fmt::Debug for Span<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Span").field("id", &self.id()).finish_non_exhaustive()
    }
}

#[cold]
#[inline(never)]
fn end<S: SpanType>(open: Option<Open>, outcome: Option<Outcome>) {
    let Some(Open { id, begun }) = open else { return };
    let if_dropped = || if std::thread::panicking() { Outcome::Panicked } else { Outcome::Ok };
    let time = clock::now();
    S::fire_end(End {
        id: SpanId::of(id),
        time,
        duration: time.saturating_sub(begun),
        outcome: outcome.unwrap_or_else(if_dropped),
    });
}
