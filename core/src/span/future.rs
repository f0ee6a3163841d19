//! Spans of futures: a future is inside its span until it is ready or dropped, and each poll can be a span of its own.

use super::{Outcome, Span, SpanId, SpanType};
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Puts futures into spans.
pub trait FutureExt: Future + Sized {
    /// Wraps the future in a span: the span ends when the future is ready, or when it is dropped before (outcome
    /// [`Cancelled`](Outcome::Cancelled)). If the span was declared by `async span`, each poll is a span of its own.
    ///
    /// ```
    /// use tracepoint::span::FutureExt;
    ///
    /// tracepoint::define_trace! { provider = "doc"; async span query(id: u64) { id } }
    ///
    /// let answer = async { 42 }.traced(tracepoint::span!(query(7)));
    /// # let _ = answer;
    /// ```
    ///
    /// Off, a poll costs the two sites of its span. On, it costs two events.
    fn traced<S: SpanType>(self, span: Span<S>) -> Traced<Self, S> {
        Traced { future: self, outcome: |_, _| Outcome::Ok, span: CancelOnDrop(span) }
    }
}

impl<F: Future> FutureExt for F {}

/// A future inside a span, created by [`FutureExt::traced`].
#[must_use = "futures do nothing unless they are polled"]
#[derive(Debug)]
pub struct Traced<F: Future, S: SpanType, O = fn(&<F as Future>::Output, SpanId) -> Outcome> {
    // Must be the first field: its destructor runs inside the span.
    future: F,
    outcome: O,
    span: CancelOnDrop<S>,
}

/// A future whose output determines the outcome of its span. Called by the macros only.
#[doc(hidden)]
pub fn traced_by<F: Future, S: SpanType, O: Fn(&F::Output, SpanId) -> Outcome>(
    future: F,
    span: Span<S>,
    outcome: O,
) -> Traced<F, S, O> {
    Traced { future, outcome, span: CancelOnDrop(span) }
}

/// Calls the body of a function. Forces the closure to be inferred as `FnOnce`, so that the body may return borrows of its captured arguments.
/// Called by the macros only.
#[doc(hidden)]
#[inline(always)]
pub fn once<T>(body: impl FnOnce() -> T) -> T {
    body()
}

impl<F: Future, S: SpanType, O: Fn(&F::Output, SpanId) -> Outcome> Future for Traced<F, S, O> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        // SAFETY: `future` is pinned with the whole: nothing moves it, there is no `Drop` of the whole, and the whole is `Unpin` only if
        // the future is. The other fields are never pinned.
        let (future, outcome, span) = unsafe {
            let this = self.get_unchecked_mut();
            (Pin::new_unchecked(&mut this.future), &this.outcome, &mut this.span.0)
        };
        let mut polling = PollGuard { span, returned: false };
        let id = polling.span.id();
        let polled = {
            let _poll = S::poll(id);
            future.poll(context)
        };
        polling.returned = true;
        if let Poll::Ready(output) = &polled {
            // Also for a span that is off: the event of an error has a site of its own.
            let outcome = outcome(output, id);
            if id != SpanId::NONE {
                polling.span.close(Some(outcome));
            }
        }
        polled
    }
}

/// The span of a future, which is cancelled if it is dropped before its end.
#[derive(Debug)]
struct CancelOnDrop<S: SpanType>(Span<S>);

impl<S: SpanType> Drop for CancelOnDrop<S> {
    #[inline]
    fn drop(&mut self) {
        if self.0.id() != SpanId::NONE {
            self.0.close(Some(if std::thread::panicking() { Outcome::Panicked } else { Outcome::Cancelled }));
        }
    }
}

/// Ends the span if the poll panics: an executor that catches the panic drops the future later.
struct PollGuard<'s, S: SpanType> {
    span: &'s mut Span<S>,
    returned: bool,
}

impl<S: SpanType> Drop for PollGuard<'_, S> {
    #[inline]
    fn drop(&mut self) {
        if !self.returned {
            self.span.close(Some(Outcome::Panicked));
        }
    }
}
