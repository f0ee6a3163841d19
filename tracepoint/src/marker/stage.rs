//! The marker stage: one evaluation of an event for all its subscribers.

use super::descriptor::{FieldView, Marker, MarkerType};
use super::subscriber::{Aggregate, Consumer, Filter, Subscriber, SubscriberList};
use crate::channel::{Express, Verdict};
use crate::clock::{self, Moment};
use crate::thread::{self, ThreadSlot};
use std::any::Any;
use std::cell::Cell;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The ways of an event through its marker. Each short one has one caller, with code of its own: shared, the catch around the field
/// expressions would be a call, and what goes through it in memory.
pub(crate) mod way {
    /// Whoever is subscribed, and whatever clock there is.
    pub(crate) const LONG: u8 = 0;
    /// One channel, and the time from the counter.
    pub(crate) const SHORT: u8 = 1;
    /// One channel, and any other clock.
    pub(crate) const SHORT_BY_CALL: u8 = 2;
}

/// An event between its clock reading and its delivery. The expansion of a field block hands it the values.
#[derive(Debug)]
pub struct Stage<'s, M, const WAY: u8> {
    list: &'s SubscriberList,
    /// The one who gets it, on the short way.
    only: Option<Express<'s>>,
    slot: &'static ThreadSlot,
    time: u64,
    /// Set when the values are there: from then on the event is accounted for.
    emitted: &'s Cell<bool>,
    marker: PhantomData<fn() -> M>,
}

/// Says that the values were delivered: a field expression cannot leave the evaluation early.
#[derive(Debug)]
pub struct Emitted(());

impl<M: MarkerType, const WAY: u8> Stage<'_, M, WAY> {
    /// Serves all subscribers.
    #[inline(always)]
    pub fn emit(self, values: &M::Values<'_>) -> Emitted {
        self.emitted.set(true);
        match self.only {
            Some(express) if WAY != way::LONG => express.record(self.time, values),
            _ => serve_all::<M>(self.list, self.slot, self.time, values),
        }
        Emitted(())
    }
}

/// The long way.
#[inline(always)]
fn serve_all<M: MarkerType>(list: &SubscriberList, slot: &'static ThreadSlot, time: u64, values: &M::Values<'_>) {
    for entry in &list.entries {
        let Subscriber { consumer, filter } = &entry.subscriber;
        let judge = || match filter {
            None => Verdict::Accepted,
            Some(filter) => judge(filter.as_ref(), FieldView::new::<M>(values)),
        };
        match consumer {
            Consumer::Record { channel, id } => channel.serve(slot, *id, time, values, judge),
            Consumer::Aggregate(aggregate) => {
                if judge() == Verdict::Accepted {
                    observe(aggregate.as_ref(), time, FieldView::new::<M>(values));
                }
            }
        }
    }
}

#[inline(never)]
fn judge(filter: &dyn Filter, event: FieldView<'_>) -> Verdict {
    match catch_unwind(AssertUnwindSafe(|| filter.accept(event))) {
        Ok(true) => Verdict::Accepted,
        Ok(false) => Verdict::Refused,
        Err(panic) => {
            crate::panic::swallow(panic);
            Verdict::Panicked
        }
    }
}

#[inline(never)]
fn observe(aggregate: &dyn Aggregate, time: u64, event: FieldView<'_>) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| aggregate.observe(time, event))) {
        crate::panic::swallow(panic);
    }
}

/// Reads the clock. `None`, with nothing done, if nobody is subscribed (any more), or, on the short way, if that is not for this event.
#[inline(always)]
fn begin<'s, M: MarkerType, const WAY: u8>(
    slot: &'static ThreadSlot,
    moment: Option<Moment>,
    emitted: &'s Cell<bool>,
) -> Option<Stage<'s, M, WAY>> {
    // First of all: it takes more registers than what follows, and less needs to be kept over it.
    let time = moment.and_then(Moment::time);
    let is_short = WAY != way::LONG;
    if is_short && time.is_none() {
        return None;
    }
    // SAFETY: callers are inside a section, and are done with the stage before they leave it.
    let list: &'s SubscriberList = unsafe { M::marker().subscribers.read() }?;
    let only = if is_short { Some(list.only.as_ref()?.express(slot)?) } else { None };
    let time = time.unwrap_or_else(clock::now);
    Some(Stage { list, only, slot, time, emitted, marker: PhantomData })
}

/// The stage of a marker derived from a field block: `evaluate` holds the field expressions. Called inside a section. `false` if
/// nothing was done.
#[inline(always)]
pub fn derived<M: MarkerType, const WAY: u8>(
    slot: &'static ThreadSlot,
    moment: Option<Moment>,
    evaluate: impl FnOnce(Stage<'_, M, WAY>) -> Emitted,
) -> bool {
    let emitted = Cell::new(false);
    let Some(stage) = begin::<M, WAY>(slot, moment, &emitted) else { return false };
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| evaluate(stage))) {
        panicked(M::marker(), emitted.get(), panic);
    }
    true
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
            if let Consumer::Record { channel, id } = &entry.subscriber.consumer {
                channel.panicked(slot, *id);
            }
        }
    }
    crate::panic::swallow(panic);
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
