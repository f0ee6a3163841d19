//! The full path of a marker: delivers the values of an event to all subscribers.

use super::declared::{Marker, MarkerType};
use super::descriptor::ValuesType;
use super::field_view::FieldView;
use super::subscriber::{Aggregate, Consumer, Decision, Filter, RangedAggregate, Route, SoleAggregate, Subscriber};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use tracepoint_ring::channel::{EventId, FilterOutcome, OpenChannel};
use tracepoint_ring::clock;
use tracepoint_ring::field::Fields;
use tracepoint_ring::thread::{self, EventOrigin, ThreadSlot};

/// Continues with an event that the fast path has evaluated and not recorded, and leaves the section of `slot`, which the fast path has entered.
///
/// The functions that it jumps to do the rest, so it needs no frame and saves no registers. They are `extern "C"` to make the jumps possible.
#[cold]
#[inline(never)]
pub(crate) extern "C" fn deliver_and_exit<M: MarkerType>(values: *const (), slot: &'static ThreadSlot) {
    // SAFETY: the caller is inside a read-side section, and the list is not used after it ends.
    let Some(list) = (unsafe { M::marker().subscribers.read() }) else { return slot.exit() };
    // Neither a `match` nor a fourth case: the compiler would make either a jump table.
    if let Route::Channel(channel) = &list.route {
        // SAFETY: this function is private to the crate, and its only caller, `Stage::emit`, passes a pointer to live values of M.
        channel.lose_or(unsafe { &*values.cast::<M::Values<'_>>() }, slot, deliver_evaluated::<M>);
    } else if let Route::Aggregate(aggregate) = &list.route {
        observe_sole::<M>(values, slot, aggregate);
    } else {
        observe_all::<M>(values, slot, &list.route);
    }
}

/// The full path of an evaluated event.
#[inline(never)]
extern "C" fn deliver_evaluated<M: MarkerType>(values: *const (), slot: &'static ThreadSlot) {
    deliver::<M>(slot, values);
    slot.exit();
}

#[inline(never)]
extern "C" fn observe_sole<M: MarkerType>(values: *const (), slot: &'static ThreadSlot, sole: &SoleAggregate) {
    // SAFETY: this function is private to the file, and the caller passes a pointer to live values of M.
    observe::<M>(sole.get(), 0, unsafe { &*values.cast::<M::Values<'_>>() });
    slot.exit();
}

/// Records an event in the channel, as the fast path does, and then passes it to the aggregates. For the full path, if the subscribers have changed.
#[inline(never)]
extern "C" fn observe_all<M: MarkerType>(values: *const (), slot: &'static ThreadSlot, route: &Route) {
    let Route::Aggregates { channel, needs_time, aggregates } = route else {
        return deliver_evaluated::<M>(values, slot);
    };
    // SAFETY: this function is private to the file, and the caller passes a pointer to live values of M.
    let fields = unsafe { &*values.cast::<M::Values<'_>>() };
    let time = match channel {
        Some(channel) => channel.try_record_timed(slot, fields),
        // SAFETY: the caller has entered a read-side section, which is left at the end of this function.
        None => unsafe { fast_time(fields, *needs_time) },
    };
    match (time, &aggregates[..]) {
        // The usual case. A loop would load all fields that a range may apply to.
        (Some(time), [aggregate]) => aggregate.show::<M>(time, fields),
        (Some(time), aggregates) => show_all::<M>(time, fields, aggregates),
        (None, _) => deliver::<M>(slot, values),
    }
    slot.exit();
}

#[inline(never)]
fn show_all<M: MarkerType>(time: u64, values: &M::Values<'_>, aggregates: &[RangedAggregate]) {
    for aggregate in aggregates {
        aggregate.show::<M>(time, values);
    }
}

impl RangedAggregate {
    #[inline(always)]
    fn show<M: MarkerType>(&self, time: u64, values: &M::Values<'_>) {
        if self.range.is_none_or(|range| range.has(values)) {
            observe::<M>(self.aggregate.as_ref(), time, values);
        }
    }
}

#[inline(always)]
fn observe<M: MarkerType>(aggregate: &dyn Aggregate, time: u64, values: &M::Values<'_>) {
    // SAFETY: the descriptor of M's marker was made for M.
    observe_view(aggregate, time, unsafe { FieldView::new::<M>(M::marker().descriptor(), values) });
}

/// The full path after evaluation: reads the clock if a subscriber uses the time, and serves each subscriber. `values` points to live `M::Values`.
///
/// `extern "C"`, because such a function never unwinds: if field expressions do not unwind either, the fast path needs no landing pad.
/// Filters and aggregates are called inside their own `catch_unwind`.
#[cold]
#[inline(never)]
pub(crate) extern "C" fn deliver<M: MarkerType>(slot: &'static ThreadSlot, values: *const ()) {
    deliver_to::<M>(M::marker(), slot, values);
}

/// The same for any marker with values of this type. `values` points to live `V::Values`.
#[inline(always)]
pub(crate) fn deliver_to<V: ValuesType>(marker: &'static Marker, slot: &'static ThreadSlot, values: *const ()) {
    // SAFETY: this function is private to the crate, and all callers pass a pointer to live values of V.
    let values = unsafe { &*values.cast::<V::Values<'_>>() };
    // SAFETY: the caller is inside a read-side section, and the list is not used after it ends.
    let Some(list) = (unsafe { marker.subscribers.read() }) else { return };
    // SAFETY: the caller is inside a read-side section.
    let time = unsafe { fast_time(values, list.needs_time) }.unwrap_or_else(clock::full_now);
    // SAFETY: the descriptor of a marker of V was made for V.
    let view = || unsafe { FieldView::new::<V>(marker.descriptor(), values) };
    for entry in &list.entries {
        let Subscriber { consumer, filter } = &entry.subscriber;
        let verdict = || match filter {
            None => FilterOutcome::Accepted,
            Some(filter) => apply_filter(filter.as_ref(), time, view()),
        };
        match consumer {
            Consumer::Record { channel, id } => channel.serve(slot, *id, time, values, verdict),
            Consumer::RecordWithContexts { channel, id } => {
                serve_with_contexts(channel, slot, *id, time, view(), filter.as_deref());
            }
            Consumer::Aggregate(ranged) => serve_aggregate(ranged, time, view(), filter.as_deref()),
        }
    }
}

/// The time of an event with these values; 0 if no subscriber uses it, `None` if it takes the full path to read the clock.
///
/// # Safety
///
/// The caller is inside a read-side section.
#[inline(always)]
unsafe fn fast_time(values: &impl Fields, is_needed: bool) -> Option<u64> {
    // SAFETY: the caller's promise.
    values.time().or_else(|| if is_needed { unsafe { clock::now_in_section() } } else { Some(0) })
}

#[inline(never)]
fn serve_aggregate(
    RangedAggregate { range, aggregate }: &RangedAggregate,
    time: u64,
    event: FieldView<'_>,
    filter: Option<&dyn Filter>,
) {
    let is_accepted = |filter: &dyn Filter| apply_filter(filter, time, event) == FilterOutcome::Accepted;
    if range.is_none_or(|range| range.has(&event)) && filter.is_none_or(is_accepted) {
        observe_view(aggregate.as_ref(), time, event);
    }
}

/// Compiled once for all markers: the fields are a type-erased view.
#[inline(never)]
fn serve_with_contexts(
    channel: &OpenChannel,
    slot: &'static ThreadSlot,
    id: EventId,
    time: u64,
    event: FieldView<'_>,
    filter: Option<&dyn Filter>,
) {
    let verdict = filter.map_or(FilterOutcome::Accepted, |filter| apply_filter(filter, time, event));
    channel.serve_with_contexts(slot, id, time, &event, verdict);
}

#[inline(never)]
fn apply_filter(filter: &dyn Filter, time: u64, event: FieldView<'_>) -> FilterOutcome {
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

#[inline(always)]
fn observe_view(aggregate: &dyn Aggregate, time: u64, event: FieldView<'_>) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| aggregate.observe(time, event))) {
        tracepoint_ring::panic::swallow(panic);
    }
}

/// Counts an event whose evaluation panicked as lost for the present subscribers, unless it was `delivered` before the panic: then the
/// drop of a temporary panicked. Looks up the list and the slot again, so that events need not keep them for this case.
#[cold]
#[inline(never)]
pub(crate) fn panicked(marker: &'static Marker, delivered: bool, panic: Box<dyn Any + Send>) {
    // SAFETY: the caller is inside a read-side section, unless the event was delivered, and the list is not used after it ends.
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

/// The stage of a hand-written marker, whose values are already evaluated.
#[cold]
#[inline(never)]
pub fn mark<M: MarkerType>(values: &M::Values<'_>) {
    thread::section(EventOrigin::from_site(None), |slot| deliver::<M>(slot, std::ptr::from_ref(values).cast()));
}
