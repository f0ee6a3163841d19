//! The marker stage: one evaluation of an event for all its subscribers.

use super::descriptor::{FieldView, Marker, MarkerType};
use super::subscriber::{Aggregate, Consumer, Decision, Filter, Subscriber, SubscriberList};
use std::any::Any;
use std::cell::Cell;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use tracepoint_ring::channel::{EventId, Express, Only, OpenChannel, Verdict};
use tracepoint_ring::clock::{self, Moment};
use tracepoint_ring::hint::unlikely;
use tracepoint_ring::thread::{self, ThreadSlot};

/// The ways of an event through its marker. Each short one has one caller, with code of its own: shared, the catch around the field
/// expressions would be a call, and what goes through it in memory.
pub(crate) mod way {
    /// Whoever is subscribed, and whatever clock there is.
    pub(crate) const LONG: u8 = 0;
    /// One channel, and the time from the counter.
    pub(crate) const SHORT: u8 = 1;
    /// One channel, and any other clock.
    pub(crate) const SHORT_BY_CALL: u8 = 2;
    /// As `SHORT`, for values that can be taken again: what cannot be written at once is left to another way, with nothing done.
    pub(crate) const SHORTEST: u8 = 3;
    /// The same without a time.
    pub(crate) const SHORTEST_UNTIMED: u8 = 4;

    /// Whether what cannot be written at once is left to another way.
    pub(crate) const fn is_shortest(way: u8) -> bool {
        matches!(way, SHORTEST | SHORTEST_UNTIMED)
    }
}

/// Who gets an event.
#[derive(Debug)]
enum To<'s> {
    All(&'s SubscriberList),
    One(&'s Only),
    /// The ring that it has for this thread.
    Ring(Express<'s>),
}

/// An event between its clock reading and its delivery. The expansion of a field block hands it the values.
#[derive(Debug)]
pub struct Stage<'s, M, const WAY: u8> {
    to: To<'s>,
    slot: &'static ThreadSlot,
    moment: Moment,
    /// Set when the values are there: from then on the event is accounted for.
    emitted: &'s Cell<bool>,
    marker: PhantomData<fn() -> M>,
}

/// Says what became of the values: a field expression cannot leave the evaluation early.
#[derive(Debug)]
pub struct Emitted(Served);

/// What a way has done with an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Served {
    /// Nothing: it is not for this one. Nothing was counted.
    No,
    /// All, without a call.
    Quickly,
    /// All, one way or another.
    Slowly,
}

impl<M: MarkerType, const WAY: u8> Stage<'_, M, WAY> {
    /// Serves all subscribers.
    #[inline(always)]
    pub fn emit(self, values: &M::Values<'_>) -> Emitted {
        let is_quick = match self.to {
            To::Ring(express) => {
                return Emitted(if express.try_record(self.moment, values) { Served::Quickly } else { Served::No });
            }
            To::One(only) => {
                self.emitted.set(true);
                // Not before the values are there: one that forks goes on in a child that has no ring.
                if let Some(express) = only.express(self.slot) {
                    express.record(self.moment, values)
                } else {
                    // A copy, so that the values need not be in memory where this does not happen.
                    let values = std::hint::black_box(*values);
                    serve_again::<M>(self.slot, self.moment.time(), &values);
                    false
                }
            }
            To::All(list) => {
                self.emitted.set(true);
                serve_all::<M>(list, self.slot, self.moment.time(), values);
                false
            }
        };
        Emitted(if is_quick { Served::Quickly } else { Served::Slowly })
    }
}

/// The rest of the long way, for an event whose thread has no ring yet.
#[cold]
#[inline(never)]
fn serve_again<M: MarkerType>(slot: &'static ThreadSlot, time: u64, values: &M::Values<'_>) {
    // SAFETY: inside a section, as all that `begin` is called by, and done with the list before it ends.
    if let Some(list) = unsafe { M::marker().subscribers.read() } {
        serve_all::<M>(list, slot, time, values);
    }
}

/// The long way.
#[inline(always)]
fn serve_all<M: MarkerType>(list: &SubscriberList, slot: &'static ThreadSlot, time: u64, values: &M::Values<'_>) {
    for entry in &list.entries {
        let Subscriber { consumer, filter } = &entry.subscriber;
        let judge = || match filter {
            None => Verdict::Accepted,
            Some(filter) => judge(filter.as_ref(), time, FieldView::new::<M>(values)),
        };
        match consumer {
            Consumer::Record { channel, id } => channel.serve(slot, *id, time, values, judge),
            Consumer::RecordWithContexts { channel, id } => {
                serve_with_contexts(channel, slot, *id, time, FieldView::new::<M>(values), filter.as_deref());
            }
            Consumer::Aggregate(aggregate) => {
                if judge() == Verdict::Accepted {
                    observe(aggregate.as_ref(), time, FieldView::new::<M>(values));
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
    let verdict = filter.map_or(Verdict::Accepted, |filter| judge(filter, time, event));
    channel.serve_with_contexts(slot, id, time, &event, verdict);
}

#[inline(never)]
fn judge(filter: &dyn Filter, time: u64, event: FieldView<'_>) -> Verdict {
    match catch_unwind(AssertUnwindSafe(|| filter.decide(time, event))) {
        Ok(Decision::Accept) => Verdict::Accepted,
        Ok(Decision::Refuse) => Verdict::Refused,
        Ok(Decision::Suppress) => Verdict::Suppressed,
        Err(panic) => {
            tracepoint_ring::panic::swallow(panic);
            Verdict::Panicked
        }
    }
}

#[inline(never)]
fn observe(aggregate: &dyn Aggregate, time: u64, event: FieldView<'_>) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| aggregate.observe(time, event))) {
        tracepoint_ring::panic::swallow(panic);
    }
}

/// Reads the clock. `None`, with nothing done, if nobody is subscribed (any more), or, on a short way, if that is not for this event.
#[inline(always)]
fn begin<'s, M: MarkerType, const WAY: u8>(
    slot: &'static ThreadSlot,
    time: Option<u64>,
    emitted: &'s Cell<bool>,
) -> Option<Stage<'s, M, WAY>> {
    let marker = M::marker();
    if matches!(WAY, way::SHORT | way::SHORTEST) && !clock::is_counter() {
        unlikely();
        return None;
    }
    let (moment, to) = if WAY == way::LONG {
        // SAFETY: callers are inside a section, and are done with the stage before they leave it.
        let list = unsafe { marker.subscribers.read() }?;
        // SAFETY: as above.
        let quick = || clock::is_counter().then(|| unsafe { clock::quick() }).filter(|now| *now != Moment::NOWHERE);
        (time.map(Moment::at).or_else(quick).unwrap_or_else(|| Moment::at(clock::now())), To::All(list))
    } else {
        // SAFETY: as above.
        let only = unsafe { marker.express() }?;
        // The ring before the clock: the processor looks it up while it waits for that, and has the less to do afterwards. Not where
        // values are evaluated in between: they may fork, and go on in a child that has no ring.
        let to = if way::is_shortest(WAY) { To::Ring(only.express(slot)?) } else { To::One(only) };
        let moment = match time {
            Some(time) => Moment::at(time),
            // SAFETY: as above.
            None => unsafe { clock::quick() },
        };
        // On the shortest way it is behind the last record, which is for another way.
        if WAY == way::SHORT && moment == Moment::NOWHERE {
            return None;
        }
        (moment, to)
    };
    Some(Stage { to, slot, moment, emitted, marker: PhantomData })
}

/// The stage of a marker derived from a field block: `evaluate` holds the field expressions. Called inside a section.
#[inline(always)]
pub fn derived<M: MarkerType, const WAY: u8>(
    slot: &'static ThreadSlot,
    time: Option<u64>,
    evaluate: impl FnOnce(Stage<'_, M, WAY>) -> Emitted,
) -> Served {
    let emitted = Cell::new(false);
    let Some(stage) = begin::<M, WAY>(slot, time, &emitted) else { return Served::No };
    match catch_unwind(AssertUnwindSafe(|| evaluate(stage))) {
        Ok(Emitted(served)) => served,
        Err(panic) => {
            panicked(M::marker(), emitted.get(), panic);
            Served::Slowly
        }
    }
}

/// The event was `delivered` before, if what panicked was the drop of a temporary. Otherwise it is lost for those who are subscribed now,
/// who may be others than a moment ago: looked up anew, as is the slot, so that nothing has to be kept for this at every event.
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
    thread::section(|slot| {
        let emitted = Cell::new(false);
        if let Some(stage) = begin::<M, { way::LONG }>(slot, None, &emitted) {
            stage.emit(values);
        }
    });
}
