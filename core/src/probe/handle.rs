//! The handle of a registered probe.

use super::set::ProbeSet;
use std::marker::PhantomData;

/// In place of a tracepoint's type: the probe was registered by name.
#[derive(Debug)]
pub enum Dynamic {}

/// A registered probe of the tracepoint `T`. Dropping it unregisters the probe.
#[must_use = "dropping the handle unregisters the probe; call `.forever()` to keep it"]
pub struct Probe<T> {
    /// `None` where tracing is compiled out.
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

    /// Unregisters the probe. When it returns, outside any probe, the probe is not running and never will again, and what it
    /// owned has been dropped. (Unless the kernel refuses by now the barrier that it allowed before, see
    /// [`Platform::kept`](crate::Platform::kept): then the probe may be running still, and what it owns is kept.)
    pub fn unregister(self) {
        drop(self);
    }

    /// Keeps the probe registered for the rest of the process.
    pub fn forever(self) {
        std::mem::forget(self);
    }
}

/// A handle to nothing: what registration gives where the feature `off` is on.
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
