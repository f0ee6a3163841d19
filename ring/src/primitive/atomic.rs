//! The annotated atomics, with the operations that this workspace uses.
//!
//! A Release is announced before the store, and an Acquire after the load, so that a thread switch in between cannot cause a false report.

use super::request::Request;
use std::sync::atomic::{self, Ordering};

fn releases(order: Ordering) -> bool {
    matches!(order, Ordering::Release | Ordering::AcqRel | Ordering::SeqCst)
}

fn acquires(order: Ordering) -> bool {
    matches!(order, Ordering::Acquire | Ordering::AcqRel | Ordering::SeqCst)
}

/// Loads with `load`, and synchronises with the Release stores up to the loaded one.
fn load<V: Copy + PartialEq>(address: usize, order: Ordering, load: impl Fn() -> V) -> V {
    let mut value = load();
    while acquires(order) {
        Request::HappensAfter.make(address);
        // A store in between may have removed the annotation that belongs to `value`.
        let again = load();
        if again == value {
            break;
        }
        value = again;
    }
    value
}

/// An annotated [`atomic::AtomicUsize`].
#[derive(Debug)]
pub struct AtomicUsize(atomic::AtomicUsize);

impl AtomicUsize {
    pub const fn new(value: usize) -> Self {
        Self(atomic::AtomicUsize::new(value))
    }

    #[inline(always)]
    pub fn load(&self, order: Ordering) -> usize {
        load(self.address(), order, || self.0.load(order))
    }

    #[inline(always)]
    pub fn store(&self, value: usize, order: Ordering) {
        if releases(order) {
            Request::HappensBefore.make(self.address());
        }
        self.0.swap(value, order);
        if !releases(order) {
            // A thread that loads this value acquires nothing, not even what the storing thread released before: a relaxed store ends the
            // release sequence (in the memory model of C++20, which Rust uses).
            Request::Forget.make(self.address());
        }
    }

    /// A read-modify-write continues a release sequence, so nothing is forgotten here.
    pub fn swap(&self, value: usize, order: Ordering) -> usize {
        if releases(order) {
            Request::HappensBefore.make(self.address());
        }
        let before = self.0.swap(value, order);
        if acquires(order) {
            Request::HappensAfter.make(self.address());
        }
        before
    }

    /// Announces the Release before it is known whether the exchange succeeds: helgrind may miss a race, but reports no false one.
    pub fn compare_exchange(
        &self,
        current: usize,
        new: usize,
        success: Ordering,
        failure: Ordering,
    ) -> Result<usize, usize> {
        if releases(success) {
            Request::HappensBefore.make(self.address());
        }
        let result = self.0.compare_exchange(current, new, success, failure);
        if acquires(if result.is_ok() { success } else { failure }) {
            Request::HappensAfter.make(self.address());
        }
        result
    }

    fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }
}

/// An annotated [`atomic::AtomicPtr`].
#[derive(Debug)]
pub struct AtomicPtr<T>(atomic::AtomicPtr<T>);

impl<T> AtomicPtr<T> {
    pub const fn new(value: *mut T) -> Self {
        Self(atomic::AtomicPtr::new(value))
    }

    #[inline(always)]
    pub fn load(&self, order: Ordering) -> *mut T {
        load(self.address(), order, || self.0.load(order))
    }

    /// A read-modify-write continues a release sequence, so nothing is forgotten here.
    pub fn swap(&self, value: *mut T, order: Ordering) -> *mut T {
        if releases(order) {
            Request::HappensBefore.make(self.address());
        }
        let before = self.0.swap(value, order);
        if acquires(order) {
            Request::HappensAfter.make(self.address());
        }
        before
    }

    /// The same as for [`AtomicUsize`].
    pub fn compare_exchange(
        &self,
        current: *mut T,
        new: *mut T,
        success: Ordering,
        failure: Ordering,
    ) -> Result<*mut T, *mut T> {
        if releases(success) {
            Request::HappensBefore.make(self.address());
        }
        let result = self.0.compare_exchange(current, new, success, failure);
        if acquires(if result.is_ok() { success } else { failure }) {
            Request::HappensAfter.make(self.address());
        }
        result
    }

    fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }
}
