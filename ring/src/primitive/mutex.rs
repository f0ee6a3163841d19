//! The annotated mutex.

use super::request::Request;
use std::ops::{Deref, DerefMut};
use std::sync::{self, LockResult, PoisonError};

/// An annotated [`sync::Mutex`].
#[derive(Debug)]
pub struct Mutex<T>(sync::Mutex<T>);

impl<T> Mutex<T> {
    pub const fn new(value: T) -> Self {
        Self(sync::Mutex::new(value))
    }

    pub fn lock(&self) -> LockResult<MutexGuard<'_, T>> {
        let address = std::ptr::from_ref(self).addr();
        let result = self.0.lock();
        Request::LockAcquired.make(address);
        match result {
            Ok(inner) => Ok(MutexGuard { address, inner }),
            Err(poisoned) => Err(PoisonError::new(MutexGuard { address, inner: poisoned.into_inner() })),
        }
    }
}

/// An annotated [`sync::MutexGuard`].
#[derive(Debug)]
pub struct MutexGuard<'a, T> {
    address: usize,
    inner: sync::MutexGuard<'a, T>,
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.inner
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.inner
    }
}

impl<T> Drop for MutexGuard<'_, T> {
    /// Runs before the fields are dropped: the lock is still held.
    fn drop(&mut self) {
        Request::LockReleasing.make(self.address);
    }
}
