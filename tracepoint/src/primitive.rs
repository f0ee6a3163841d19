//! The only place that chooses whose atomics and locks these are: the standard library's, loom's, or twins of the former that
//! tell helgrind what they order.
//!
//! Code that a loom model runs names its atomics through this module. Statics cannot be built from loom's types, so the
//! models (`models/`) include the files of the small structures and put them together themselves.

#[cfg(not(any(loom, tp_helgrind)))]
pub(crate) use std::sync::{
    Mutex, MutexGuard,
    atomic::{AtomicPtr, AtomicUsize},
};

#[cfg(not(loom))]
pub(crate) use std::sync::atomic::{Ordering, fence};

#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicPtr, AtomicUsize, Ordering, fence};

// The path is spelt out because the models include this file by path, too.
#[cfg(tp_helgrind)]
#[path = "primitive/annotated.rs"]
mod annotated;

#[cfg(tp_helgrind)]
pub(crate) use annotated::{AtomicPtr, AtomicUsize, Mutex, MutexGuard};

/// Lets somebody else run: called by a waiter between two looks.
pub(crate) fn yield_now() {
    #[cfg(not(loom))]
    std::thread::yield_now();
    #[cfg(loom)]
    loom::thread::yield_now();
}
