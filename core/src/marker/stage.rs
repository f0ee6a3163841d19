//! The marker stage: one evaluation of an event for all its subscribers.

use super::declared::{Marker, MarkerType};
use super::field_view::FieldView;
use super::subscriber::{Aggregate, Consumer, Decision, Filter, Subscriber};
use std::any::Any;
use std::cell::Cell;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use tracepoint_ring::channel::{EventId, FilterOutcome, OpenChannel, SoleSubscriber};
use tracepoint_ring::clock;
use tracepoint_ring::thread::{self, ThreadSlot};

/// An event whose fields are being evaluated. The expansion of a field block hands it the values.
#[derive(Debug)]
pub struct Stage<'s, M> {
    slot: &'static ThreadSlot,
    /// On the fast path, where the event goes.
    sole: Option<&'s SoleSubscriber>,
    /// Set when the values are there: from then on the event is accounted for.
    emitted: &'s Cell<bool>,
    marker: PhantomData<fn() -> M>,
}

/// Says that the values were handed over: a field expression cannot leave the evaluation early.
#[derive(Debug)]
pub struct Emitted(Served);

/// What became of an event in the marker stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Served {
    /// Nothing: it is not for this path, and nothing was evaluated.
    No,
    /// The fast path has recorded it.
    Fast,
    /// All subscribers were served, on the full path.
    InFull,
}

impl<M: MarkerType> Stage<'_, M> {
    /// Serves all subscribers.
    #[inline(always)]
    pub fn emit(self, values: &M::Values<'_>) -> Emitted {
        self.emitted.set(true);
        let Some(sole) = self.sole else {
            deliver::<M>(self.slot, std::ptr::from_ref(values).cast());
            return Emitted(Served::InFull);
        };
        if sole.try_record(self.slot, values) {
            return Emitted(Served::Fast);
        }
        // A copy that the compiler takes for another value, so that the values need not be in memory where this does not happen.
        let values = std::hint::black_box(*values);
        deliver_again::<M>(std::ptr::from_ref(&values).cast());
        Emitted(Served::InFull)
    }
}

/// As `deliver`, for a thread that has a slot: looked up again, so that the fast path need not keep it for this.
#[cold]
#[inline(never)]
extern "C" fn deliver_again<M: MarkerType>(values: *const ()) {
    if let Some(slot) = thread::claimed() {
        deliver::<M>(slot, values);
    }
}

/// The full path from the values on: reads the clock and serves each subscriber. `values` points to live `M::Values`.
///
/// `extern "C"`, because such a function never unwinds: where field expressions do not either, the fast path needs no landing pad.
/// Filters and aggregates are called inside a catch of their own.
#[cold]
#[inline(never)]
extern "C" fn deliver<M: MarkerType>(slot: &'static ThreadSlot, values: *const ()) {
    // SAFETY: private to this module, whose callers pass a pointer to live values of M.
    let values = unsafe { &*values.cast::<M::Values<'_>>() };
    // SAFETY: callers are inside a section, and this is done with the list before it ends.
    let Some(list) = (unsafe { M::marker().subscribers.read() }) else { return };
    let time = clock::now();
    // SAFETY: the marker's descriptor was made for M.
    let view = || unsafe { FieldView::new::<M>(M::marker().descriptor(), values) };
    for entry in &list.entries {
        let Subscriber { consumer, filter } = &entry.subscriber;
        let judge = || match filter {
            None => FilterOutcome::Accepted,
            Some(filter) => judge(filter.as_ref(), time, view()),
        };
        match consumer {
            Consumer::Record { channel, id } => channel.serve(slot, *id, time, values, judge),
            Consumer::RecordWithContexts { channel, id } => {
                serve_with_contexts(channel, slot, *id, time, view(), filter.as_deref());
            }
            Consumer::Aggregate(aggregate) => {
                if judge() == FilterOutcome::Accepted {
                    observe(aggregate.as_ref(), time, view());
                }
            }
        }
    }
}

/// One copy for all markers, which is why the fields are a view.
#[inline(never)]
fn serve_with_contexts(
    channel: &OpenChannel,
    slot: &'static ThreadSlot,
    id: EventId,
    time: u64,
    event: FieldView<'_>,
    filter: Option<&dyn Filter>,
) {
    let verdict = filter.map_or(FilterOutcome::Accepted, |filter| judge(filter, time, event));
    channel.serve_with_contexts(slot, id, time, &event, verdict);
}

#[inline(never)]
fn judge(filter: &dyn Filter, time: u64, event: FieldView<'_>) -> FilterOutcome {
    match catch_unwind(AssertUnwindSafe(|| filter.decide(time, event))) {
        Ok(Decision::Accept) => FilterOutcome::Accepted,
        Ok(Decision::Refuse) => FilterOutcome::Refused,
        Ok(Decision::Suppress) => FilterOutcome::Suppressed,
        Err(panic) => {
            tracepoint_ring::panic::swallow(panic);
            FilterOutcome::Panicked
        }
    }
}

#[inline(never)]
fn observe(aggregate: &dyn Aggregate, time: u64, event: FieldView<'_>) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| aggregate.observe(time, event))) {
        tracepoint_ring::panic::swallow(panic);
    }
}

/// The stage of a marker derived from a field block: `evaluate` holds the field expressions. Called inside a section.
#[inline(always)]
pub fn derived<M: MarkerType, const FAST: bool>(
    slot: &'static ThreadSlot,
    evaluate: impl FnOnce(Stage<'_, M>) -> Emitted,
) -> Served {
    let marker = M::marker();
    let sole = if FAST {
        // SAFETY: callers are inside a section, and are done with the stage before they leave it.
        let Some(sole) = (unsafe { marker.sole_subscriber() }) else { return Served::No };
        Some(sole)
    } else if marker.is_subscribed() {
        None
    } else {
        return Served::No;
    };
    let emitted = Cell::new(false);
    let stage = Stage { slot, sole, emitted: &emitted, marker: PhantomData };
    match catch_unwind(AssertUnwindSafe(|| evaluate(stage))) {
        Ok(Emitted(served)) => served,
        Err(panic) => {
            panicked(marker, emitted.get(), panic);
            Served::InFull
        }
    }
}

/// The event was `delivered` before, if what panicked was the drop of a temporary. Otherwise it is lost for the present subscribers: the
/// list is looked up anew, as is the slot, so that nothing has to be kept for this at every event.
#[cold]
#[inline(never)]
fn panicked(marker: &'static Marker, delivered: bool, panic: Box<dyn Any + Send>) {
    // SAFETY: the caller is inside a section, and this is done with the list before it ends.
    let list = if delivered { None } else { unsafe { marker.subscribers.read() } };
    if let Some(slot) = thread::claimed() {
        for entry in list.into_iter().flat_map(|list| &list.entries) {
            match &entry.subscriber.consumer {
                Consumer::Record { channel, id } | Consumer::RecordWithContexts { channel, id } => {
                    channel.panicked(slot, *id);
                }
                Consumer::Aggregate(_) => {}
            }
        }
    }
    tracepoint_ring::panic::swallow(panic);
}

/// The stage of a hand-written marker, whose values are evaluated already.
#[cold]
#[inline(never)]
pub fn mark<M: MarkerType>(values: &M::Values<'_>) {
    thread::section(|slot| deliver::<M>(slot, std::ptr::from_ref(values).cast()));
}
