//! The memory of a statistic, and who counts where in it.
//!
//! A statistic is an array of 64-bit words, zero at first (`docs/format-statistics.md`). All threads share it; so may the readers of other
//! processes, if it is a mapped file. Its counters stand in *cells*. The first [`OWN_CELLS`] threads of the process (by the indices of their
//! slots) have one each, where an increment is a plain addition. All further threads share the last cell and use atomic additions. A
//! thread's cell passes to the next thread with the same index together with the slot (T1 of `tracepoint_ring::thread`).

use crate::row::{add_integer, increment};
use std::sync::atomic::{AtomicU64, Ordering};

/// The number of threads that can have a cell of their own.
pub(crate) const OWN_CELLS: usize = 16;

/// The memory of a statistic.
///
/// The words are the same at every call. They are zero when a statistic is made in them, and only the statistic changes them.
pub trait Memory: Send + Sync {
    /// The words.
    fn words(&self) -> &[AtomicU64];

    /// Adds one to the word at `at`. `is_own`: only the calling thread and its signal handlers change it. The last thing that the shortest
    /// statistics do, so that they can jump here and need no stack frame for a call of [`words`](Self::words).
    ///
    /// # Panics
    ///
    /// If there is no such word.
    #[doc(hidden)]
    fn increment(&self, at: usize, is_own: bool) {
        increment(&self.words()[at], is_own);
    }

    /// Adds a value to the row of integers at `row`, as [`increment`](Self::increment) adds one.
    ///
    /// # Panics
    ///
    /// If there is no such word.
    #[doc(hidden)]
    fn add_integer(&self, row: usize, value: u64, is_own: bool) {
        add_integer(&self.words()[row..], value, is_own);
    }
}

impl Memory for Box<[AtomicU64]> {
    fn words(&self) -> &[AtomicU64] {
        self
    }

    #[inline(always)]
    fn add_integer(&self, row: usize, value: u64, is_own: bool) {
        add_integer(&self[row..], value, is_own);
    }
}

/// Zeroed words on the heap, all of them touched.
pub(crate) fn allocate(words: usize) -> Box<[AtomicU64]> {
    (0..words).map(|_| AtomicU64::new(0)).collect()
}

/// The counters in which a thread counts.
#[derive(Clone, Copy)]
pub(crate) struct Cell<'a> {
    /// All words of the statistic: one check of the bounds at each use.
    words: &'a [AtomicU64],
    place: CellPlace,
}

/// Where the cells stand in the words: one for each of the first `own` threads, and one for all others. An observer keeps a copy beside what
/// else it reads at an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cells {
    pub(crate) start: usize,
    /// The words of a cell.
    pub(crate) size: usize,
    pub(crate) own: usize,
}

impl Cells {
    /// The cell of the thread with this index: its own, or the shared one.
    #[inline(always)]
    pub(crate) fn of(self, thread: usize) -> CellPlace {
        CellPlace { start: self.start + thread.min(self.own) * self.size, is_own: thread < self.own }
    }

    /// Behind the last cell.
    pub(crate) fn end(self) -> usize {
        self.start + (self.own + 1) * self.size
    }

    /// Where each cell begins.
    pub(crate) fn starts(self) -> impl Iterator<Item = usize> {
        (self.start..self.end()).step_by(self.size)
    }
}

/// Where a cell begins in the words, and whether no other thread changes it.
#[derive(Clone, Copy)]
pub(crate) struct CellPlace {
    pub(crate) start: usize,
    pub(crate) is_own: bool,
}

impl<'a> Cell<'a> {
    #[inline]
    pub(crate) fn new(words: &'a [AtomicU64], place: CellPlace) -> Self {
        Self { words, place }
    }

    /// Adds one to the counter at `at`.
    #[inline]
    pub(crate) fn increment(self, at: usize) {
        increment(self.word(at), self.place.is_own);
    }

    /// Whether no other thread changes it.
    #[inline(always)]
    pub(crate) fn is_own(self) -> bool {
        self.place.is_own
    }

    #[inline]
    pub(crate) fn word(self, at: usize) -> &'a AtomicU64 {
        &self.words[self.place.start + at]
    }

    /// The words from `at` on, to the end of the statistic.
    pub(crate) fn from(self, at: usize) -> &'a [AtomicU64] {
        &self.words[self.place.start + at..]
    }
}

/// A word, for a reader. What other words say about it is ordered by whoever publishes them.
pub(crate) fn load(words: &[AtomicU64], at: usize) -> u64 {
    words[at].load(Ordering::Relaxed)
}
