//! A descriptor that was opened or compared just now.

use super::kept::{Descriptor, Kept};
use rustix::fs::OFlags;
use std::io;
use std::ops::Deref;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

/// An open descriptor that was opened or compared just now, to be used at once.
#[derive(Debug)]
pub struct Checked<T: Descriptor>(Arc<Kept<T>>);

impl<T: Descriptor> Checked<T> {
    /// A descriptor that was opened to be used at once, and is then closed.
    ///
    /// # Errors
    ///
    /// As [`Kept::new`].
    pub fn of(held: T) -> io::Result<Self> {
        Kept::new(held).map(|kept| Self(Arc::new(kept)))
    }

    /// What was opened with these flags, to be used at once, and then closed.
    pub(super) fn opened(held: T, flags: OFlags) -> io::Result<Self> {
        Kept::opened(held, flags).map(|kept| Self(Arc::new(kept)))
    }

    /// One that was compared just now.
    pub(super) const fn compared(kept: Arc<Kept<T>>) -> Self {
        Self(kept)
    }

    /// Whether the descriptor is still the same.
    pub fn is_open(&self) -> bool {
        self.0.is_open()
    }

    /// Keeps it for longer: it is then compared before each use.
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
