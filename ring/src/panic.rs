//! Panics of probes, filters, aggregates and field expressions: caught, silent, counted by whoever caught them.
//!
//! The panic hook runs before anything is caught, and would print. The first registration therefore wraps the hook that is
//! installed at that time in one that stays silent inside a section. A hook that the program installs later replaces the
//! wrapper; such panics are caught all the same, and printed.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

/// Installs the silent hook, once. Under `panic = "abort"` a panic ends the program, and must be heard: nothing is installed.
pub fn install_silent_hook() {
    static ONCE: Once = Once::new();
    // `set_hook` panics in a thread that is panicking; a later registration will do it.
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

/// Drops what a panic carried, even if that panics in turn.
pub fn swallow(payload: Box<dyn Any + Send>) {
    if let Err(again) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        // Its payload's `drop` panicked; a third attempt would be no better.
        std::mem::forget(again);
    }
}
