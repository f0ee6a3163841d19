//! Where the time comes from when it is not the time stamp counter: one function, which is called through a pointer.

use super::system;
use std::panic::catch_unwind;
use std::sync::atomic::{AtomicPtr, Ordering};

/// A function that gives the time, in ns.
pub(super) type Source = fn() -> u64;

/// The one in use.
static SOURCE: Pointer = Pointer::to(system::monotonic);
/// The user's, which [`guarded`] calls.
static USER: Pointer = Pointer::to(system::monotonic);

/// A pointer to a function.
struct Pointer(AtomicPtr<()>);

impl Pointer {
    const fn to(source: Source) -> Self {
        Self(AtomicPtr::new(source as *mut ()))
    }

    fn get(&self, order: Ordering) -> Source {
        let pointer = self.0.load(order);
        // SAFETY: what is stored here comes from a `Source` (`to` and `set`), and on the targets that Rust's standard library
        // has, pointers to functions and to data have one size and form.
        unsafe { std::mem::transmute::<*mut (), Source>(pointer) }
    }

    fn set(&self, source: Source, order: Ordering) {
        self.0.store(source as *mut (), order);
    }
}

/// The time now.
#[cold]
#[inline(never)]
pub(super) fn now() -> u64 {
    // K3: pairs with the Release store in `use_user`.
    SOURCE.get(Ordering::Acquire)()
}

/// From here on the time is that of `source`, a function of this crate.
pub(super) fn use_source(source: Source) {
    SOURCE.set(source, Ordering::Release);
}

/// From here on the time is that of a function of the user's.
pub(super) fn use_user(source: Source) {
    USER.set(source, Ordering::Relaxed);
    // K3: pairs with the Acquire load in `now`: who calls `guarded` finds the user's function there.
    SOURCE.set(guarded, Ordering::Release);
}

/// The user's clock. Whatever it does, nothing but a time comes out: 0 if it panicked.
fn guarded() -> u64 {
    catch_unwind(USER.get(Ordering::Relaxed)).unwrap_or_else(|panic| {
        crate::panic::swallow(panic);
        0
    })
}

/// Always the same: for records whose order is all that counts.
pub(super) fn constant() -> u64 {
    0
}
