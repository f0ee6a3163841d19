//! The clock while the time stamp counter is not in use: a function, called through a pointer.

use super::system;
use std::panic::catch_unwind;
use std::sync::atomic::{AtomicPtr, Ordering};

/// A function that returns the time, in ns.
pub(super) type Source = fn() -> u64;

/// The current source.
static SOURCE: Pointer = Pointer::to(system::monotonic);
/// The user's function, which [`guarded`] calls.
static USER: Pointer = Pointer::to(system::monotonic);

/// A pointer to a function.
struct Pointer(AtomicPtr<()>);

impl Pointer {
    const fn to(source: Source) -> Self {
        Self(AtomicPtr::new(source as *mut ()))
    }

    fn get(&self, order: Ordering) -> Source {
        let pointer = self.0.load(order);
        // SAFETY: the pointer was made of a `Source` in `to` or `set`, and on all targets of the standard library function and data
        // pointers have the same size and representation.
        unsafe { std::mem::transmute::<*mut (), Source>(pointer) }
    }

    fn set(&self, source: Source, order: Ordering) {
        self.0.store(source as *mut (), order);
    }
}

/// The current time.
#[cold]
#[inline(never)]
pub(super) fn now() -> u64 {
    // K3: pairs with the Release store in `use_user`.
    SOURCE.get(Ordering::Acquire)()
}

/// Takes the time from `source`, a function of this crate.
pub(super) fn use_source(source: Source) {
    SOURCE.set(source, Ordering::Release);
}

/// Takes the time from a function of the user.
pub(super) fn use_user(source: Source) {
    USER.set(source, Ordering::Relaxed);
    // K3: pairs with the Acquire load in `now`: a thread that calls `guarded` finds the user's function.
    SOURCE.set(guarded, Ordering::Release);
}

/// Calls the user's function; returns 0 if it panics.
fn guarded() -> u64 {
    catch_unwind(USER.get(Ordering::Relaxed)).unwrap_or_else(|panic| {
        crate::panic::swallow(panic);
        0
    })
}

/// Always 0, for [`Clock::None`](super::Clock::None).
pub(super) fn constant() -> u64 {
    0
}
