//! In the steady state an event allocates nothing.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    /// How often this thread has asked for memory, or given some back.
    static CALLS: Cell<u64> = const { Cell::new(0) };
}

struct Counting;

impl Counting {
    fn count() {
        // A thread that ends has no count any more.
        let _ = CALLS.try_with(|calls| calls.set(calls.get() + 1));
    }
}

// SAFETY: all is left to the system's allocator; counting does not allocate: the count is a constant at first, and needs no drop.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        Self::count();
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        Self::count();
        // SAFETY: as the caller promises; all memory comes from there.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn an_event_allocates_nothing() {
    own_process!();
    let calls = || CALLS.with(Cell::get);
    let before = calls();
    drop(Box::new(std::hint::black_box(1)));
    assert_eq!(calls() - before, 2, "this thread is counted");
    crate::states::in_each(|state, act| {
        let before = calls();
        act();
        assert_eq!(calls() - before, 0, "{state}");
    });
}
