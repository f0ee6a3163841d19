//! Panics of probes, filters, aggregates and field expressions: caught, not printed, and counted where they are caught.
//!
//! The panic hook runs before a panic is caught, and would print it. The first registration therefore wraps the installed hook in one that
//! prints nothing inside a section. A hook that the program installs later replaces the wrapper; panics are then caught and printed.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

/// Installs the silent hook, once. Not under `panic = "abort"`, where a panic ends the program and has to be printed.
pub fn install_silent_hook() {
    static ONCE: Once = Once::new();
    // `set_hook` panics in a thread that is panicking; a later registration installs the hook.
    if cfg!(panic = "abort") || std::thread::panicking() {
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
pub fn swallow(payload: Box<dyn Any + Send>) {
    if let Err(again) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        // The `drop` panicked, with a payload of its own: leak that one.
        std::mem::forget(again);
    }
}
