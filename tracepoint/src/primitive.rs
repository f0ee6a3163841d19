//! The only place that chooses between the standard library's atomics and loom's.
//!
//! Code that a loom model runs names its atomics through this module. Statics cannot be built from loom's types, so the
//! models build the small structures (a section, a published pointer, a ring buffer) themselves and leave out the tables.

#[cfg(not(loom))]
pub(crate) use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering, fence};

#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering, fence};

/// Lets somebody else run: called by a waiter between two looks.
pub(crate) fn yield_now() {
    #[cfg(not(loom))]
    std::thread::yield_now();
    #[cfg(loom)]
    loom::thread::yield_now();
}
