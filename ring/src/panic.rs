//! Panics of probes, filters, aggregates and field expressions: caught, not printed, and counted where they are caught.
//!
//! The panic hook of the program runs before a panic is caught, and by default prints it. [`silence_panics`] wraps it on request.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

/// Has panics of probes, filters and field expressions not reach the program's panic hook. They are caught and counted with and without it.
///
/// Without it, each such panic runs the panic hook, as any panic does that is caught later: the default one prints a message, one that ends the
/// process ends it, and in a signal handler it may wait for a lock of the interrupted thread. Call this once, after the program has installed
/// its hook: it wraps that hook in one that does nothing inside a tracepoint. A hook of the program's own can ask
/// [`in_probe`](crate::update::in_probe) instead. Later calls do nothing; so does each under `panic = "abort"`, where such a panic ends the
/// program and has to be printed.
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
