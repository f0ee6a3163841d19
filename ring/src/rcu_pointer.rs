//! An immutable list behind one pointer: replaced by a store, read inside a section, freed after a grace period.

use crate::primitive::{AtomicPtr, Ordering};
use std::ptr::{NonNull, null_mut};

/// A pointer to the current version of an immutable `T`, or to none.
///
/// Readers hold a read-side section (see [`crate::grace`]) for as long as they use what [`read`](Self::read) gave them.
/// Writers are serialised by the update lock; the old version that they get back is freed after a grace period.
#[derive(Debug)]
pub struct RcuPointer<T> {
    current: AtomicPtr<T>,
}

impl<T> RcuPointer<T> {
    /// No version.
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
        // P1: pairs with the Release half of the swap in `replace`: the contents were written before the pointer.
        let current = self.current.load(Ordering::Acquire);
        // SAFETY: a non-null pointer came from `Box::into_raw` in `replace` and is freed only after a grace period that
        // began after it was replaced; the caller's section (or lock) keeps that from ending.
        unsafe { current.as_ref() }
    }

    /// Whether there is a current version; it may have been replaced by the time that the caller looks.
    #[cfg(not(loom))]
    #[inline(always)]
    pub fn is_some(&self) -> bool {
        !self.current.load(Ordering::Relaxed).is_null()
    }

    /// Puts `next` in place and returns the version before. The caller holds the update lock.
    pub fn replace(&self, next: Option<Box<T>>) -> Option<Retired<T>> {
        let next = next.map_or(null_mut(), Box::into_raw);
        // P1: Release pairs with the Acquire load in `read`.
        NonNull::new(self.current.swap(next, Ordering::AcqRel)).map(Retired)
    }
}

/// A version that was replaced. Readers may still use it, so it is kept as a pointer, not as a box, until it is dropped.
///
/// Drop it after a grace period that began after `replace` returned.
#[must_use = "dropping it frees the old version: let a grace period pass first"]
#[derive(Debug)]
pub struct Retired<T>(NonNull<T>);

// SAFETY: a retired version is a box in waiting: it is owned by whoever holds this value, and readers of other threads only
// share it, so it may move to and be freed on another thread exactly if `T` may be both sent and shared.
unsafe impl<T: Send + Sync> Send for Retired<T> {}

impl<T> Drop for Retired<T> {
    fn drop(&mut self) {
        // SAFETY: the pointer came from `Box::into_raw` in `replace`, the swap took it out of `current`, and the holder has let
        // a grace period pass (the contract of this type), so no reader is left.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}
