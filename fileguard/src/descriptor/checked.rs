//! A descriptor that was opened or compared just now.

use super::kept::{Descriptor, Kept};
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

    /// One that was compared just now.
    pub(super) const fn compared(kept: Arc<Kept<T>>) -> Self {
        Self(kept)
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
