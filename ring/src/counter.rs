//! Counters that one thread, and the signal handlers on it, increment; anybody may read.
//!
//! A handler that interrupts `load, add, store` between the load and the store would have its own increment overwritten. On
//! x86-64 one unlocked `add` to memory cannot be interrupted half way, and costs what the three instructions cost. Elsewhere
//! the counter uses an atomic addition.

use std::sync::atomic::{AtomicU64, Ordering};

/// A count kept by one thread and its signal handlers.
#[derive(Debug, Default)]
#[repr(transparent)]
pub(crate) struct LocalCounter(AtomicU64);

impl LocalCounter {
    pub(crate) const fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Adds one. Called by the owning thread, or a signal handler on it.
    #[inline(always)]
    pub(crate) fn increment(&self) {
        #[cfg(all(target_arch = "x86_64", not(miri), not(tp_portable)))]
        // SAFETY: the operand is a live, aligned u64 that only this thread writes; one instruction changes it, so that no signal
        // handler sees or makes a half-done update. Other threads read it with atomic loads of the same width, which on this
        // architecture never tear.
        unsafe {
            std::arch::asm!("add qword ptr [{}], 1", in(reg) self.0.as_ptr(), options(nostack));
        }
        #[cfg(not(all(target_arch = "x86_64", not(miri), not(tp_portable))))]
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// Adds one to the counter that stands `OFFSET` bytes behind the beginning of `row`: of several, one register finds all.
    ///
    /// # Safety
    ///
    /// There is a counter of the calling thread's.
    #[inline(always)]
    pub(crate) unsafe fn increment_at<const OFFSET: usize, T>(row: &T) {
        let row = std::ptr::from_ref(row);
        #[cfg(all(target_arch = "x86_64", not(miri), not(tp_portable)))]
        // SAFETY: as in `increment`.
        unsafe {
            std::arch::asm!("add qword ptr [{} + {}], 1", in(reg) row, const OFFSET, options(nostack));
        }
        #[cfg(not(all(target_arch = "x86_64", not(miri), not(tp_portable))))]
        // SAFETY: the caller's promise.
        unsafe {
            (*row.byte_add(OFFSET).cast::<Self>()).increment();
        }
    }

    /// Adds `n` to a counter that several threads share.
    pub(crate) fn add_shared(&self, n: u64) {
        self.0.fetch_add(n, Ordering::Relaxed);
    }

    /// The count now. Exact once the owning thread is known to be outside (after a grace period).
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
