//! The handle of a registered probe.

use super::set::ProbeSet;
use std::marker::PhantomData;

/// Stands for the tracepoint's type in the handle of a probe that was registered by name.
#[derive(Debug)]
pub enum Dynamic {}

/// A registered probe of the tracepoint `T`. Dropping it unregisters the probe.
#[must_use = "dropping the handle unregisters the probe; call `.forever()` to keep it"]
pub struct Probe<T> {
    /// `None` if tracing is compiled out.
    registration: Option<(&'static ProbeSet, u64)>,
    tracepoint: PhantomData<fn() -> T>,
}

impl<T> std::fmt::Debug for Probe<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Probe").field("tracepoint", &std::any::type_name::<T>()).finish_non_exhaustive()
    }
}

impl<T> Probe<T> {
    pub(crate) const fn new(set: &'static ProbeSet, ticket: u64) -> Self {
        Self { registration: Some((set, ticket)), tracepoint: PhantomData }
    }

    /// Unregisters the probe. When this returns, if it is called outside any probe, the probe is not running and never runs again, and
    /// everything it owned has been dropped. The exception: if the kernel begins to refuse `membarrier` after allowing it before (see
    /// [`Platform::never_freed`](crate::Platform::never_freed)), the probe may still be running, and its data are never freed.
    pub fn unregister(self) {
        drop(self);
    }

    /// Keeps the probe registered for the rest of the process.
    pub fn forever(self) {
        std::mem::forget(self);
    }
}

/// A handle without a registration. Registering returns it under the feature `off`.
#[doc(hidden)]
pub const fn inert<T>() -> Probe<T> {
    Probe { registration: None, tracepoint: PhantomData }
}

impl<T> Drop for Probe<T> {
    fn drop(&mut self) {
        if let Some((set, ticket)) = self.registration.take() {
            set.disconnect(ticket);
        }
    }
}
