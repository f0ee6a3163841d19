//! A value that a forked child must not touch: its threads exist in the parent only, and may have held locks when the process forked.

use std::process;

/// A value of the process that made it. In a forked child it cannot be reached, and is not dropped.
#[derive(Debug)]
pub(crate) struct ProcessBound<T> {
    process: u32,
    /// `None` once it was taken.
    value: Option<T>,
}

impl<T> ProcessBound<T> {
    pub(crate) fn new(value: T) -> Self {
        Self { process: process::id(), value: Some(value) }
    }

    /// Returns whether this process made it.
    pub(crate) fn is_ours(&self) -> bool {
        self.process == process::id()
    }

    /// Returns the value; `None` in a forked child, and once it was taken; here and below.
    pub(crate) fn get(&self) -> Option<&T> {
        self.value.as_ref().filter(|_| self.is_ours())
    }

    pub(crate) fn get_mut(&mut self) -> Option<&mut T> {
        if self.is_ours() { self.value.as_mut() } else { None }
    }

    pub(crate) fn take(&mut self) -> Option<T> {
        if self.is_ours() { self.value.take() } else { None }
    }
}

impl<T> Drop for ProcessBound<T> {
    fn drop(&mut self) {
        if !self.is_ours() {
            std::mem::forget(self.value.take());
        }
    }
}
