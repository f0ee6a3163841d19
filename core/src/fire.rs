//! The code that an enabled site runs: the fast path and the full path of an event, from the section to the values of its fields.
//!
//! The generated cold function calls [`fire_fast`], and [`fire_full`] for events that the fast path does not take. Both serve the
//! tracepoint's marker; then the full path runs the probes. In this order the recorded time is as close to the site as possible, and events
//! recorded by probes come after the event that ran the probes.
//!
//! The expansion of a field block calls [`derived`], which evaluates the fields once for all subscribers of the marker.

use crate::marker::declared::MarkerType;
use crate::marker::{Marker, deliver, deliver_and_exit, panicked};
use crate::tracepoint::{Dispatch, TracepointType};
use std::cell::Cell;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use tracepoint_ring::channel::SoleSubscriber;
use tracepoint_ring::hint::{align_function, unlikely};
use tracepoint_ring::thread::{self, ThreadSlot};

pub use tracepoint_ring::thread::EventOrigin;

/// The fast path, for an event that does not fire inside another one, and whose tracepoint has no condition, no probe, and a sole subscriber that is
/// a channel without filter and contexts. If there are aggregates in addition to that channel, or instead of it, it evaluates the fields, and an
/// out-of-line function records them and passes them to the aggregates. For other events it evaluates nothing and returns the argument for
/// [`fire_full`].
#[inline(always)]
pub fn fire_fast<T: TracepointType>(args: &T::Args<'_>) -> Result<(), EventOrigin> {
    align_function();
    if !T::IS_UNCONDITIONAL {
        return Err(EventOrigin::from_site(None));
    }
    let Some(slot) = thread::enter_fast() else {
        unlikely();
        return Err(EventOrigin::from_site(None));
    };
    match T::mark::<true>(slot, args) {
        Dispatch::Delivered => slot.exit(),
        Dispatch::DeliveredAndExited => {}
        Dispatch::None => return Err(EventOrigin::from_site(Some(slot))),
    }
    Ok(())
}

/// The full path, for any event: with any condition, subscribers and probes, even inside another event.
#[inline(always)]
pub fn fire_full<T: TracepointType>(args: &T::Args<'_>, entered: EventOrigin) {
    thread::section(entered, |slot| {
        // A condition that panics counts as false.
        match catch_unwind(AssertUnwindSafe(|| T::holds(args))) {
            Ok(true) => {}
            Ok(false) => return,
            Err(panic) => {
                T::tracepoint().probes.count_panic();
                return tracepoint_ring::panic::swallow(panic);
            }
        }
        T::mark::<false>(slot, args);
        // SAFETY: `args` are live arguments of T, and the probes are those of T's tracepoint.
        unsafe { T::tracepoint().probes.run(slot, std::ptr::from_ref(args).cast()) };
    });
}

impl Marker {
    /// The subscriber of the fast path; `None` if events take the full path.
    ///
    /// # Safety
    ///
    /// The caller is inside a read-side section for the whole of `'a`.
    #[inline(always)]
    pub(crate) unsafe fn sole_subscriber<'a>(&self) -> Option<&'a SoleSubscriber> {
        // P1: pairs with the swap in `choose_path`.
        let sole = self.sole.load(Ordering::Acquire);
        // SAFETY: null, or a pointer into the list of subscribers that was current when it was stored. `choose_path` replaces the pointer
        // after that list was replaced, and before the grace period after which the list is freed. That grace period cannot end before
        // the caller's read-side section.
        unsafe { sole.as_ref() }
    }
}

/// An event whose fields are being evaluated. The expansion of a field block passes the values to [`Stage::emit`].
#[derive(Debug)]
pub struct Stage<'s, M> {
    slot: &'static ThreadSlot,
    /// The subscriber that gets the event on the fast path; `None` on the full path.
    sole: Option<&'s SoleSubscriber>,
    /// `None` until the values are evaluated; from then on the subscribers account for the event.
    dispatch: &'s Cell<Dispatch>,
    marker: PhantomData<fn() -> M>,
}

/// Proof that the values were passed to `emit`: a field expression cannot leave the evaluation early.
#[derive(Debug)]
pub struct EmitProof(Dispatch);

impl<M: MarkerType> Stage<'_, M> {
    /// Serves all subscribers.
    #[inline(always)]
    pub fn emit(self, values: &M::Values<'_>) -> EmitProof {
        self.dispatch.set(Dispatch::Delivered);
        let Some(sole) = self.sole else {
            deliver::<M>(self.slot, std::ptr::from_ref(values).cast());
            return EmitProof(Dispatch::Delivered);
        };
        if sole.try_record(self.slot, values) {
            return EmitProof(Dispatch::Delivered);
        }
        // `black_box` hides that the copy has the same value, so that the compiler need not keep the values in memory on the fast path.
        let values = std::hint::black_box(*values);
        deliver_and_exit::<M>(std::ptr::from_ref(&values).cast(), self.slot);
        self.dispatch.set(Dispatch::DeliveredAndExited);
        EmitProof(Dispatch::DeliveredAndExited)
    }
}

/// The stage of a marker derived from a field block. `evaluate` contains the field expressions. Called inside a read-side section.
#[inline(always)]
pub fn derived<M: MarkerType, const FAST: bool>(
    slot: &'static ThreadSlot,
    evaluate: impl FnOnce(Stage<'_, M>) -> EmitProof,
) -> Dispatch {
    let marker = M::marker();
    let sole = if FAST {
        // SAFETY: the caller is inside a read-side section, and the stage is not used after it ends.
        let Some(sole) = (unsafe { marker.sole_subscriber() }) else { return Dispatch::None };
        Some(sole)
    } else if marker.is_subscribed() {
        None
    } else {
        return Dispatch::None;
    };
    let dispatch = Cell::new(Dispatch::None);
    let stage = Stage { slot, sole, dispatch: &dispatch, marker: PhantomData };
    match catch_unwind(AssertUnwindSafe(|| evaluate(stage))) {
        Ok(EmitProof(dispatch)) => dispatch,
        Err(panic) => {
            panicked(marker, dispatch.get() != Dispatch::None, panic);
            if FAST && dispatch.get() != Dispatch::DeliveredAndExited {
                // Looks up the slot again: keeping it across the evaluation would cost every event the saving of a register.
                thread::exit_fast();
            }
            Dispatch::DeliveredAndExited
        }
    }
}
