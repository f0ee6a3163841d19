//! A descriptor that has just been opened or compared.

use super::guarded_fd::{Descriptor, GuardedFd};
use rustix::fs::OFlags;
use std::io;
use std::ops::Deref;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

/// An open descriptor that has just been opened or compared, for immediate use.
#[derive(Debug)]
pub struct CheckedFd<T: Descriptor>(Arc<GuardedFd<T>>);

impl<T: Descriptor> CheckedFd<T> {
    /// Wraps a descriptor that has just been opened, is used immediately, and is then closed.
    ///
    /// # Errors
    ///
    /// The same as for [`GuardedFd::new`].
    pub fn of(held: T) -> io::Result<Self> {
        GuardedFd::new(held).map(|kept| Self(Arc::new(kept)))
    }

    /// Wraps a descriptor opened with these flags, for immediate use; it is then closed.
    pub(super) fn opened(held: T, flags: OFlags) -> io::Result<Self> {
        GuardedFd::opened(held, flags).map(|kept| Self(Arc::new(kept)))
    }

    /// Wraps a descriptor that has just been compared.
    pub(super) const fn compared(kept: Arc<GuardedFd<T>>) -> Self {
        Self(kept)
    }

    /// Returns whether the descriptor is still the same.
    pub fn is_open(&self) -> bool {
        self.0.is_open()
    }

    /// Keeps the descriptor for longer: it is then compared before each use.
    pub fn keep(self) -> Arc<GuardedFd<T>> {
        self.0
    }
}

impl<T: Descriptor> Deref for CheckedFd<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0.held().expect("taken by drop only")
    }
}

impl<T: Descriptor> AsFd for CheckedFd<T> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        (**self).as_fd()
    }
}
