//! The memory of a statistic, and who counts where in it.
//!
//! A statistic is an array of 64-bit words, zero at first (`docs/format-statistics.md`). All threads share it; so may the readers of other
//! processes, if it is a mapped file. Its counters stand in *cells*. The first [`OWN_CELLS`] threads of the process (by the indices of their
//! slots) have one each, where an increment is a plain addition. All further threads share the last cell and use atomic additions. A
//! thread's cell passes to the next thread with the same index together with the slot (T1 of `tracepoint_ring::thread`).

use std::sync::atomic::{AtomicU64, Ordering};
use tracepoint_ring::thread::add_local;

/// The number of threads that can have a cell of their own.
pub(crate) const OWN_CELLS: usize = 16;

/// The memory of a statistic.
///
/// The words are the same at every call. They are zero when a statistic is made in them, and only the statistic changes them.
pub trait Memory: Send + Sync {
    /// The words.
    fn words(&self) -> &[AtomicU64];
}

impl Memory for Box<[AtomicU64]> {
    fn words(&self) -> &[AtomicU64] {
        self
    }
}

/// Zeroed words on the heap, all of them touched.
pub(crate) fn allocate(words: usize) -> Box<[AtomicU64]> {
    (0..words).map(|_| AtomicU64::new(0)).collect()
}

/// The counters in which a thread counts.
#[derive(Clone, Copy)]
pub(crate) struct Cell<'a> {
    pub(crate) words: &'a [AtomicU64],
    /// Whether no other thread changes them.
    is_own: bool,
}

impl<'a> Cell<'a> {
    /// The cell of the thread with this index among `own + 1` cells of `size` words each.
    #[inline]
    pub(crate) fn of(thread: usize, words: &'a [AtomicU64], own: usize, size: usize) -> Self {
        let index = thread.min(own);
        Self { words: &words[index * size..][..size], is_own: thread < own }
    }

    /// Adds `n` to the counter at `at`.
    #[inline]
    pub(crate) fn add(self, at: usize, n: u64) {
        if self.is_own {
            add_local(&self.words[at], n);
        } else {
            self.words[at].fetch_add(n, Ordering::Relaxed);
        }
    }

    /// The words from `start` on.
    pub(crate) fn from(self, start: usize) -> Self {
        Self { words: &self.words[start..], ..self }
    }
}

/// A word, for a reader. What other words say about it is ordered by whoever publishes them.
pub(crate) fn load(words: &[AtomicU64], at: usize) -> u64 {
    words[at].load(Ordering::Relaxed)
}
