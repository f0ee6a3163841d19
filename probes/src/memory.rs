//! The memory of a statistic, and its division among threads.
//!
//! A statistic is an array of 64-bit words, initially zero (`docs/format-statistics.md`). All threads share it; so can readers in other
//! processes, if it is a mapped file. The counters are in *cells*. The first [`OWN_CELLS`] threads of the process (by the indices of their
//! slots) have a cell each, where an increment is a plain addition. All other threads share the last cell and use atomic additions. A
//! thread's cell passes to the next thread with the same index together with the slot (T1 of `tracepoint_ring::thread`).

use crate::row::{add_integer, increment};
use std::sync::atomic::{AtomicU64, Ordering};

/// Number of threads that can have a cell of their own.
pub(crate) const OWN_CELLS: usize = 16;

/// The memory of a statistic.
///
/// Every call returns the same words. They are zero when a statistic is created in them, and only the statistic changes them.
pub trait Memory: Send + Sync {
    /// The words.
    fn words(&self) -> &[AtomicU64];

    /// Adds one to the word at `at`. With `is_own`, only the calling thread and its signal handlers change the word. The shortest statistics end with
    /// a tail call of this function, and so avoid the stack frame that a call of [`words`](Self::words) needs.
    ///
    /// # Panics
    ///
    /// If `at` is out of range.
    #[doc(hidden)]
    fn increment(&self, at: usize, is_own: bool) {
        increment(&self.words()[at], is_own);
    }

    /// Adds a value to the row of integers at `row`. For `is_own`, see [`increment`](Self::increment).
    ///
    /// # Panics
    ///
    /// If the row is out of range.
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

/// Zeroed words on the heap, with all pages touched.
pub(crate) fn allocate(words: usize) -> Box<[AtomicU64]> {
    (0..words).map(|_| AtomicU64::new(0)).collect()
}

/// The counters that a thread updates.
#[derive(Clone, Copy)]
pub(crate) struct Cell<'a> {
    /// All words of the statistic. Each access has one bounds check.
    words: &'a [AtomicU64],
    place: CellPlace,
}

/// The location of the cells: one for each of the first `own` threads, and one for all others. An observer keeps a copy next to the other data that
/// it reads for an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cells {
    pub(crate) start: usize,
    /// Words per cell.
    pub(crate) size: usize,
    pub(crate) own: usize,
}

impl Cells {
    /// The cell of the thread with this index: its own, or the shared one.
    #[inline(always)]
    pub(crate) fn of(self, thread: usize) -> CellPlace {
        CellPlace { start: self.start + thread.min(self.own) * self.size, is_own: thread < self.own }
    }

    /// The end of the last cell.
    pub(crate) fn end(self) -> usize {
        self.start + (self.own + 1) * self.size
    }

    /// The start of each cell.
    pub(crate) fn starts(self) -> impl Iterator<Item = usize> {
        (self.start..self.end()).step_by(self.size)
    }
}

/// The start of a cell in the words, and whether a single thread changes it.
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

    /// Returns whether only one thread changes it.
    #[inline(always)]
    pub(crate) fn is_own(self) -> bool {
        self.place.is_own
    }

    #[inline]
    pub(crate) fn word(self, at: usize) -> &'a AtomicU64 {
        &self.words[self.place.start + at]
    }

    /// The words from `at` to the end of the statistic.
    pub(crate) fn from(self, at: usize) -> &'a [AtomicU64] {
        &self.words[self.place.start + at..]
    }
}

/// Loads a word for a reader. Its publisher orders it relative to other words.
pub(crate) fn load(words: &[AtomicU64], at: usize) -> u64 {
    words[at].load(Ordering::Relaxed)
}
