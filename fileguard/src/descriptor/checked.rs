//! A descriptor that has just been opened or compared.

use super::kept::{Descriptor, Kept};
use rustix::fs::OFlags;
use std::io;
use std::ops::Deref;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

/// An open descriptor that has just been opened or compared, for immediate use.
#[derive(Debug)]
pub struct Checked<T: Descriptor>(Arc<Kept<T>>);

impl<T: Descriptor> Checked<T> {
    /// Wraps a descriptor that has just been opened, is used immediately, and is then closed.
    ///
    /// # Errors
    ///
    /// The same as for [`Kept::new`].
    pub fn of(held: T) -> io::Result<Self> {
        Kept::new(held).map(|kept| Self(Arc::new(kept)))
    }

    /// Wraps a descriptor opened with these flags, for immediate use; it is then closed.
    pub(super) fn opened(held: T, flags: OFlags) -> io::Result<Self> {
        Kept::opened(held, flags).map(|kept| Self(Arc::new(kept)))
    }

    /// Wraps a descriptor that has just been compared.
    pub(super) const fn compared(kept: Arc<Kept<T>>) -> Self {
        Self(kept)
    }

    /// Returns whether the descriptor is still the same.
    pub fn is_open(&self) -> bool {
        self.0.is_open()
    }

    /// Keeps the descriptor for longer: it is then compared before each use.
    pub fn keep(self) -> Arc<Kept<T>> {
        self.0
    }
}

impl<T: Descriptor> Deref for Checked<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0.held().expect("taken by drop only")
    }
}

impl<T: Descriptor> AsFd for Checked<T> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        (**self).as_fd()
    }
}
