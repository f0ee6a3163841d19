//! Panics of probes, filters, aggregates and field expressions: caught, not printed, and counted where they are caught.
//!
//! The program's panic hook runs before a panic is caught, and by default prints it. [`silence_panics`] wraps the hook on request.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

/// Prevents panics of probes, filters and field expressions from reaching the program's panic hook. They are caught and counted in any case.
///
/// Without it, each such panic runs the panic hook, like any panic that is caught later: the default hook prints a message, a hook that ends the
/// process ends it, and in a signal handler a hook may wait for a lock of the interrupted thread. Call this once, after the program has installed
/// its hook: it wraps that hook in one that does nothing inside a tracepoint. Alternatively, the program's own hook can call
/// [`in_probe`](crate::update::in_probe). Later calls do nothing. Under `panic = "abort"` no call has an effect, because such a panic ends the
/// program and must be printed.
///
/// # Panics
///
/// If the thread is panicking.
pub fn silence_panics() {
    static ONCE: Once = Once::new();
    if cfg!(panic = "abort") {
        return;
    }
    ONCE.call_once(|| {
        let previous = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !crate::thread::in_section() {
                previous(info);
            }
        }));
    });
}

/// Drops the payload of a panic, even if its `drop` panics.
#[cold]
#[inline(never)]
pub fn swallow(payload: Box<dyn Any + Send>) {
    if let Err(again) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        // The `drop` panicked, with a payload of its own: leak that one.
        std::mem::forget(again);
    }
}
