//! Counters that one thread and its signal handlers increment, and that any thread may read.
//!
//! If a handler interrupts `load, add, store` between the load and the store, its increment would be overwritten. On x86-64 one unlocked
//! `add` to memory cannot be interrupted half-way, and costs the same as the three instructions. Other targets use an atomic addition.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

/// A counter with one writing thread, including its signal handlers.
#[derive(Debug, Default)]
#[repr(transparent)]
pub(crate) struct LocalCounter(AtomicU64);

impl LocalCounter {
    pub(crate) const fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Adds one. Called only by the owning thread and its signal handlers.
    #[inline(always)]
    pub(crate) fn increment(&self) {
        // SAFETY: `self` is a live counter.
        unsafe { Self::increment_at::<0>(NonNull::from(self).cast()) }
    }

    /// Adds one to the counter at `OFFSET` bytes after `base`, without an instruction that computes its address. Called only by the owning
    /// thread and its signal handlers.
    ///
    /// # Safety
    ///
    /// There is a live counter at that offset in the object that `base` points to.
    #[inline(always)]
    pub(crate) unsafe fn increment_at<const OFFSET: usize>(base: NonNull<u8>) {
        #[cfg(all(target_arch = "x86_64", not(miri), not(tp_portable)))]
        // SAFETY: the operand is a live, aligned u64 that only this thread writes (the caller's promise). It is changed by one instruction,
        // which a signal handler cannot split. Other threads read it with atomic loads of the same width, which do not tear on this
        // architecture.
        unsafe {
            std::arch::asm!("add qword ptr [{} + {}], 1", in(reg) base.as_ptr(), const OFFSET, options(nostack));
        }
        #[cfg(not(all(target_arch = "x86_64", not(miri), not(tp_portable))))]
        // SAFETY: the caller's promise.
        unsafe { base.add(OFFSET).cast::<Self>().as_ref() }.0.fetch_add(1, Ordering::Relaxed);
    }

    /// Takes one increment back. Called only by the owning thread and its signal handlers.
    pub(crate) fn take_back(&self) {
        #[cfg(all(target_arch = "x86_64", not(miri), not(tp_portable)))]
        // SAFETY: as in `increment_at`.
        unsafe {
            std::arch::asm!("sub qword ptr [{}], 1", in(reg) &raw const self.0, options(nostack));
        }
        #[cfg(not(all(target_arch = "x86_64", not(miri), not(tp_portable))))]
        self.0.fetch_sub(1, Ordering::Relaxed);
    }

    /// Adds `n` to a counter that several threads share.
    pub(crate) fn add_shared(&self, n: u64) {
        self.0.fetch_add(n, Ordering::Relaxed);
    }

    /// Adds `n`. Called only by the owning thread and its signal handlers.
    #[inline(always)]
    fn add(&self, n: u64) {
        #[cfg(all(target_arch = "x86_64", not(miri), not(tp_portable)))]
        // SAFETY: as in `increment_at`.
        unsafe {
            std::arch::asm!("add qword ptr [{}], {}", in(reg) &raw const self.0, in(reg) n, options(nostack));
        }
        #[cfg(not(all(target_arch = "x86_64", not(miri), not(tp_portable))))]
        self.0.fetch_add(n, Ordering::Relaxed);
    }

    /// The current count. Exact once the owning thread is known to be outside of any event (after a grace period).
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Adds `n` to a counter that one thread and its signal handlers change, at the cost of a plain addition if the target has one that a
/// signal cannot split (x86-64), otherwise of an atomic one. If several threads change the counter, additions are lost.
#[inline]
pub fn add_local(counter: &AtomicU64, n: u64) {
    // SAFETY: `LocalCounter` is a transparent `AtomicU64`.
    unsafe { NonNull::from(counter).cast::<LocalCounter>().as_ref() }.add(n);
}

/// Adds `n` to a 128-bit number in two counters, the lower half first. Callers and cost are the same as for [`add_local`].
#[inline]
pub fn add_local_wide(low: &AtomicU64, high: &AtomicU64, n: u64) {
    #[cfg(all(target_arch = "x86_64", not(miri), not(tp_portable)))]
    // SAFETY: as in `LocalCounter::increment_at`, for each of the two instructions. A signal handler that runs between them leaves the carry
    // flag as it was.
    unsafe {
        std::arch::asm!(
            "add qword ptr [{}], {}",
            "adc qword ptr [{}], 0",
            in(reg) low.as_ptr(),
            in(reg) n,
            in(reg) high.as_ptr(),
            options(nostack)
        );
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri), not(tp_portable))))]
    add_shared_wide(low, high, n);
}

/// Adds `n` to a 128-bit number in two counters, the lower half first. Several threads may change them.
#[inline]
pub fn add_shared_wide(low: &AtomicU64, high: &AtomicU64, n: u64) {
    if low.fetch_add(n, Ordering::Relaxed).checked_add(n).is_none() {
        high.fetch_add(1, Ordering::Relaxed);
    }
}

/// Raises a number that one thread and its signal handlers change to `value`, if it is lower.
#[inline(always)]
pub fn raise_local(number: &AtomicU64, value: u64) {
    #[cfg(all(target_arch = "x86_64", not(miri), not(tp_portable)))]
    // SAFETY: as in `LocalCounter::increment_at`: one instruction compares and replaces. If a signal handler has changed the number since it was
    // loaded, that fails, and is repeated with the value found.
    unsafe {
        std::arch::asm!(
            "2:",
            "cmp rax, {value}",
            "jae 3f",
            "cmpxchg qword ptr [{at}], {value}",
            "jne 2b",
            "3:",
            at = in(reg) number.as_ptr(),
            value = in(reg) value,
            inout("rax") number.load(Ordering::Relaxed) => _,
            options(nostack)
        );
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri), not(tp_portable))))]
    number.fetch_max(value, Ordering::Relaxed);
}

/// Adds one to a counter that one thread and its signal handlers change, and returns its previous value: no two of these calls return the
/// same value. The cost is the same as for [`add_local`].
#[inline]
pub fn take_local(counter: &AtomicU64) -> u64 {
    #[cfg(all(target_arch = "x86_64", not(miri), not(tp_portable)))]
    {
        let mut taken = 1_u64;
        // SAFETY: as in `LocalCounter::increment_at`.
        unsafe {
            std::arch::asm!("xadd qword ptr [{}], {}", in(reg) counter.as_ptr(), inout(reg) taken, options(nostack));
        }
        taken
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri), not(tp_portable))))]
    counter.fetch_add(1, Ordering::Relaxed)
}
