//! The marker stage: one evaluation of an event for all its subscribers.

use super::descriptor::{FieldView, MarkerType};
use super::subscriber::{Aggregate, Consumer, Filter, Subscriber, SubscriberList};
use crate::channel::Verdict;
use crate::clock;
use crate::thread::{self, ThreadSlot};
use std::any::Any;
use std::cell::Cell;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// An event between its clock reading and its delivery. The expansion of a field block hands it the values.
#[derive(Debug)]
pub struct Stage<'s, M> {
    list: &'s SubscriberList,
    slot: &'static ThreadSlot,
    time: u64,
    /// Set when the values are there: from then on the event is accounted for.
    emitted: &'s Cell<bool>,
    marker: PhantomData<fn() -> M>,
}

/// Says that the values were delivered: a field expression cannot leave the evaluation early.
#[derive(Debug)]
pub struct Emitted(());

impl<M: MarkerType> Stage<'_, M> {
    /// Serves all subscribers.
    #[inline(always)]
    pub fn emit(self, values: &M::Values<'_>) -> Emitted {
        self.emitted.set(true);
        for entry in &self.list.entries {
            let Subscriber { consumer, filter } = &entry.subscriber;
            let judge = || match filter {
                None => Verdict::Accepted,
                Some(filter) => judge(filter.as_ref(), FieldView::new::<M>(values)),
            };
            match consumer {
                Consumer::Record { channel, id } => channel.serve(self.slot, *id, self.time, values, judge),
                Consumer::Aggregate(aggregate) => {
                    if let Verdict::Accepted = judge() {
                        observe(aggregate.as_ref(), self.time, FieldView::new::<M>(values));
                    }
                }
            }
        }
        Emitted(())
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

/// Reads the clock. `None` if nobody is subscribed (any more).
#[inline(always)]
fn begin<'s, M: MarkerType>(slot: &'static ThreadSlot, emitted: &'s Cell<bool>) -> Option<Stage<'s, M>> {
    // SAFETY: callers are inside a section, and are done with the stage before they leave it.
    let list: &'s SubscriberList = unsafe { M::marker().subscribers.read() }?;
    Some(Stage { list, slot, time: clock::now(), emitted, marker: PhantomData })
}

/// The stage of a marker derived from a field block: `evaluate` holds the field expressions. Called inside a section.
#[inline(always)]
pub fn derived<M: MarkerType>(slot: &'static ThreadSlot, evaluate: impl FnOnce(Stage<'_, M>) -> Emitted) {
    let emitted = Cell::new(false);
    let Some(stage) = begin::<M>(slot, &emitted) else { return };
    let list = stage.list;
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| evaluate(stage))) {
        panicked((!emitted.get()).then_some(list), slot, panic);
    }
}

/// `unserved` are those who did not get the event: none, if what panicked was the drop of a temporary, after the values were
/// delivered.
#[cold]
#[inline(never)]
fn panicked(unserved: Option<&SubscriberList>, slot: &'static ThreadSlot, panic: Box<dyn Any + Send>) {
    for entry in unserved.into_iter().flat_map(|list| &list.entries) {
        if let Consumer::Record { channel, id } = &entry.subscriber.consumer {
            channel.panicked(slot, *id);
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
        if let Some(stage) = begin::<M>(slot, &emitted) {
            stage.emit(values);
        }
    });
}
