//! Markers registered while the program runs, for callsites that are known only at run time, such as those of other tracing
//! libraries. Their fire path begins with a load of the key's flag; they have no sites.
//!
//! They are never removed: their descriptions are leaked, and their number is bounded. The list is changed under the update lock, so that no fork
//! finds its mutex locked. A library that registers markers declares `tracepoint:registers_markers`, for which recordings get additional counters.

use super::declared::Marker;
use super::descriptor::{MarkerParts, ValuesType};
use super::stage::{deliver_to, panicked};
use crate::key::Key;
use std::any::Any;
use std::fmt;
use std::marker::PhantomData;
use std::sync::{Mutex, PoisonError};
use tracepoint_ring::thread::{self, EventOrigin};
use tracepoint_ring::update::UpdateGuard;

/// Maximum number of markers that can be registered at run time.
pub const MAX_RUNTIME_MARKERS: usize = 1 << 14;

static MARKERS: Mutex<Vec<&'static Marker>> = Mutex::new(Vec::new());

/// A marker registered at run time. Its values have the type `V::Values`.
pub struct RuntimeMarker<V> {
    marker: &'static Marker,
    values: PhantomData<fn(V)>,
}

impl<V> Clone for RuntimeMarker<V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<V> Copy for RuntimeMarker<V> {}

impl<V> fmt::Debug for RuntimeMarker<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.marker.fmt(f)
    }
}

impl<V: ValuesType> RuntimeMarker<V> {
    /// Registers a marker with fields that describe `V::Values`; `None` if there are [`MAX_RUNTIME_MARKERS`] already. Call
    /// [`announce`](crate::hooks::announce) after a group of markers.
    pub fn register(parts: MarkerParts, _: &UpdateGuard<'_>) -> Option<Self> {
        let mut markers = MARKERS.lock().unwrap_or_else(PoisonError::into_inner);
        if markers.len() == MAX_RUNTIME_MARKERS {
            return None;
        }
        let key = Box::leak(Box::new(Key::new()));
        let marker = &*Box::leak(Box::new(Marker::new::<V>(parts, key, None)));
        markers.push(marker);
        Some(Self { marker, values: PhantomData })
    }

    /// Returns whether there is a subscriber: one relaxed load.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.marker.is_on()
    }

    /// Delivers an event to the subscribers, like the expansion of a field block.
    #[inline]
    pub fn record(&self, values: &V::Values<'_>) {
        let Some(slot) = thread::enter_fast() else { return self.record_in_full(EventOrigin::from_site(None), values) };
        // SAFETY: inside the section, which `exit` or `record_in_full` leaves.
        match unsafe { self.marker.sole_subscriber() } {
            Some(sole) if sole.try_record(slot, values) || sole.lose(slot, values) => slot.exit(),
            _ => self.record_in_full(EventOrigin::from_site(Some(slot)), values),
        }
    }

    /// Counts an event as lost for the subscribers, because the evaluation of its values panicked. The panic ends here.
    #[cold]
    pub fn panicked(&self, panic: Box<dyn Any + Send>) {
        thread::section(EventOrigin::from_site(None), |_| panicked(self.marker, false, panic));
    }

    #[cold]
    #[inline(never)]
    fn record_in_full(&self, entered: EventOrigin, values: &V::Values<'_>) {
        thread::section(entered, |slot| deliver_to::<V>(self.marker, slot, std::ptr::from_ref(values).cast()));
    }
}

/// All markers registered at run time.
pub(crate) fn registered(_: &UpdateGuard<'_>) -> Vec<&'static Marker> {
    MARKERS.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// A number that changes with each registration.
pub(crate) fn generation(_: &UpdateGuard<'_>) -> u64 {
    MARKERS.lock().unwrap_or_else(PoisonError::into_inner).len() as u64
}
