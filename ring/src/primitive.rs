//! The only place that chooses whose atomics and locks these are: the standard library's, loom's, or twins of the former that
//! tell helgrind what they order.
//!
//! Code that a loom model runs names its atomics through this module. Statics cannot be built from loom's types, so the
//! models (`models/`) include the files of the small structures and put them together themselves.

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

/// The owner's half of F1/F2, whose other half always is the kernel's, or a grace period.
#[cfg(not(loom))]
#[inline(always)]
pub(crate) fn owner_fence() {
    std::sync::atomic::compiler_fence(Ordering::SeqCst);
}

#[cfg(loom)]
pub(crate) fn owner_fence() {
    fence(Ordering::SeqCst);
}

/// Loom does not know the kernel's fences: in a model both halves are ordinary ones.
#[cfg(loom)]
pub(crate) fn light_fence() {
    fence(Ordering::SeqCst);
}

#[cfg(loom)]
pub(crate) fn heavy_fence() -> bool {
    fence(Ordering::SeqCst);
    true
}

/// The word at `offset` bytes of a place.
///
/// # Safety
///
/// The place has an aligned word there, which nobody uses otherwise than as an atomic while others do, and which lives long enough.
#[cfg(not(loom))]
#[inline(always)]
#[expect(clippy::cast_ptr_alignment, reason = "the caller's promise")]
pub(crate) unsafe fn word_at<'a>(place: *mut u8, offset: usize) -> &'a AtomicU64 {
    // SAFETY: the caller's promise.
    unsafe { &*place.add(offset).cast::<AtomicU64>() }
}

/// In a model a place is an array of loom's words, which have another size.
#[cfg(loom)]
pub(crate) unsafe fn word_at<'a>(place: *mut u8, offset: usize) -> &'a AtomicU64 {
    // SAFETY: the caller's promise.
    unsafe { &*place.cast::<AtomicU64>().add(offset / 8) }
}

// The path is spelt out because the models include this file by path, too.
#[cfg(tp_helgrind)]
#[path = "primitive/annotated.rs"]
mod annotated;

#[cfg(tp_helgrind)]
pub use annotated::{AtomicPtr, AtomicUsize, Mutex, MutexGuard};

/// Lets somebody else run: called by a waiter between two looks. After many looks it sleeps: what it waits for may have a lower
/// priority, or be slow.
#[cfg(not(loom))]
pub(crate) fn pause(looks: u32) {
    const PATIENCE: u32 = 100;
    if looks < PATIENCE {
        std::thread::yield_now();
    } else {
        std::thread::sleep(std::time::Duration::from_micros(u64::from(looks).min(1000)));
    }
}

#[cfg(loom)]
pub(crate) fn pause(_: u32) {
    loom::thread::yield_now();
}
