//! Which of several copies of a counter a thread increments: threads that run side by side should not share a cache line.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

/// More copies than this cost memory and save nothing.
const MAX_SHARDS: usize = 64;

/// How many copies there shall be: one for each processor, rounded up to a power of two.
pub(crate) fn count() -> usize {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    processors.next_power_of_two().min(MAX_SHARDS)
}

/// The calling thread's number. Threads are numbered by turns, so that any few that live together are spread evenly.
pub(crate) fn current() -> usize {
    const NONE: usize = usize::MAX;
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        // Const-initialised and without a destructor: reached without allocation, also while the thread ends.
        static OWN: Cell<usize> = const { Cell::new(NONE) };
    }
    OWN.with(|own| {
        if own.get() == NONE {
            own.set(NEXT.fetch_add(1, Ordering::Relaxed) % MAX_SHARDS);
        }
        own.get()
    })
}
