//! Chooses the copy of a counter that a thread increments, so that concurrent threads rarely share a cache line.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

/// More copies than this would cost memory without an effect.
const MAX_SHARDS: usize = 64;

/// The number of copies: that of the processors, rounded up to a power of two.
pub(crate) fn count() -> usize {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    processors.next_power_of_two().min(MAX_SHARDS)
}

/// The number of the calling thread. Numbers are assigned round-robin, so that threads are spread evenly over the copies.
pub(crate) fn current() -> usize {
    const NONE: usize = usize::MAX;
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        // Const-initialised and without a destructor, so that it is accessible without allocation, also while the thread ends.
        static OWN: Cell<usize> = const { Cell::new(NONE) };
    }
    OWN.with(|own| {
        if own.get() == NONE {
            own.set(NEXT.fetch_add(1, Ordering::Relaxed) % MAX_SHARDS);
        }
        own.get()
    })
}
