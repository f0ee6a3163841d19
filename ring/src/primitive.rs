//! Selects the atomics and locks: the standard library's, loom's, or annotated ones that describe their orderings to helgrind.
//!
//! Code that runs in a loom model takes its atomics from this module. Statics cannot be built from loom's types, so the models (`models/`)
//! include the files of the small structures and combine them themselves.

#[cfg(not(any(loom, tp_helgrind)))]
pub use std::sync::{
    Mutex, MutexGuard,
    atomic::{AtomicPtr, AtomicUsize},
};

#[cfg(not(loom))]
pub use crate::membarrier::{heavy_fence, light_fence};
#[cfg(not(loom))]
pub use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

#[cfg(loom)]
pub use loom::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};

/// F1, the owner's half: a compiler fence. Its partner F2 is always `membarrier` or a grace period.
#[cfg(not(loom))]
#[inline(always)]
pub(crate) fn owner_fence() {
    std::sync::atomic::compiler_fence(Ordering::SeqCst);
}

#[cfg(loom)]
pub(crate) fn owner_fence() {
    fence(Ordering::SeqCst);
}

/// Loom has no `membarrier`: in a model both halves are full fences.
#[cfg(loom)]
pub(crate) fn light_fence() {
    fence(Ordering::SeqCst);
}

#[cfg(loom)]
pub(crate) fn heavy_fence() -> bool {
    fence(Ordering::SeqCst);
    true
}

/// The word at `offset` bytes from `base`.
///
/// # Safety
///
/// There is an aligned word there that lives for `'a`, and that is only accessed as an atomic while other threads may access it.
#[cfg(not(loom))]
#[inline(always)]
#[expect(clippy::cast_ptr_alignment, reason = "the caller's promise")]
pub(crate) unsafe fn word_at<'a>(base: *mut u8, offset: usize) -> &'a AtomicU64 {
    // SAFETY: the caller's promise.
    unsafe { &*base.add(offset).cast::<AtomicU64>() }
}

/// In a model, memory is an array of loom's words, which have another size.
#[cfg(loom)]
pub(crate) unsafe fn word_at<'a>(base: *mut u8, offset: usize) -> &'a AtomicU64 {
    // SAFETY: the caller's promise.
    unsafe { &*base.cast::<AtomicU64>().add(offset / 8) }
}

// The path is explicit because the models include this file by path as well.
#[cfg(tp_helgrind)]
#[path = "primitive/annotated.rs"]
mod annotated;

#[cfg(tp_helgrind)]
pub use annotated::{AtomicPtr, AtomicUsize, Mutex, MutexGuard};

/// Lets other threads run between two checks of a waiter. After many checks it sleeps, because the thread that it waits for may be slow or
/// have a lower priority.
#[cfg(not(loom))]
pub(crate) fn pause(checks: u32) {
    const YIELDS: u32 = 100;
    if checks < YIELDS {
        std::thread::yield_now();
    } else {
        std::thread::sleep(std::time::Duration::from_micros(u64::from(checks).min(1000)));
    }
}

#[cfg(loom)]
pub(crate) fn pause(_: u32) {
    loom::thread::yield_now();
}
