//! An RCU-protected pointer: replaced by one store, read inside a section; the old value is freed after a grace period.

use crate::primitive::{AtomicPtr, Ordering};
use std::ptr::{NonNull, null_mut};

/// A pointer to the current version of an immutable `T`, or null.
///
/// Readers stay inside a read-side section (see `crate::grace`) as long as they use the reference that [`read`](Self::read) returned.
/// Writers are serialised by the update lock, and free the old version after a grace period.
#[derive(Debug)]
pub struct RcuPointer<T> {
    current: AtomicPtr<T>,
}

impl<T> RcuPointer<T> {
    /// A null pointer.
    #[cfg(not(loom))]
    pub const fn null() -> Self {
        Self { current: AtomicPtr::new(null_mut()) }
    }

    #[cfg(loom)]
    pub(crate) fn null() -> Self {
        Self { current: AtomicPtr::new(null_mut()) }
    }

    /// The current version.
    ///
    /// # Safety
    ///
    /// The caller is inside a read-side section, or holds the update lock, for the whole of `'a`.
    #[inline(always)]
    pub unsafe fn read<'a>(&self) -> Option<&'a T> {
        // P1: pairs with the Release half of the swap in `replace`: the contents are written before the pointer.
        let current = self.current.load(Ordering::Acquire);
        // SAFETY: a non-null pointer comes from `Box::into_raw` in `replace`, and is freed only after a grace period that begins after it
        // was replaced. That cannot elapse during the caller's section; the update lock, if the caller holds it, prevents a replacement.
        unsafe { current.as_ref() }
    }

    /// Returns whether there is a current version. Only a hint: it may change at any time.
    #[cfg(not(loom))]
    #[inline(always)]
    pub fn is_some(&self) -> bool {
        !self.current.load(Ordering::Relaxed).is_null()
    }

    /// Publishes `next` and returns the previous version. The caller holds the update lock.
    pub fn replace(&self, next: Option<Box<T>>) -> Option<OldVersion<T>> {
        let next = next.map_or(null_mut(), Box::into_raw);
        // P1: Release pairs with the Acquire load in `read`.
        NonNull::new(self.current.swap(next, Ordering::AcqRel)).map(OldVersion)
    }
}

/// A replaced version. Readers may still use it, so it is a pointer and not a box until it is dropped.
///
/// Drop it after a grace period that began after `replace` returned.
#[must_use = "dropping it frees the old version: wait for a grace period first"]
#[derive(Debug)]
pub struct OldVersion<T>(NonNull<T>);

// SAFETY: this value owns the old version, which readers on other threads may still share. So it may be moved to and dropped on another
// thread if `T` is both `Send` and `Sync`.
unsafe impl<T: Send + Sync> Send for OldVersion<T> {}

impl<T> Drop for OldVersion<T> {
    fn drop(&mut self) {
        // SAFETY: the pointer comes from `Box::into_raw` in `replace`, whose swap removed it from `current`, so it is freed once. By the contract
        // of this type a grace period has elapsed since, so no reader uses it.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}
