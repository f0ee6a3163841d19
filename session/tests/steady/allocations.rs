//! In the steady state an event allocates nothing.

use crate::states::RUN_DIR;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    /// Number of allocator calls of this thread.
    static CALLS: Cell<u64> = const { Cell::new(0) };
}

struct Counting;

impl Counting {
    fn count() {
        // A thread that ends has no counter any more.
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

/// Also an event that matches the rule of a trigger, and is captured.
#[test]
fn an_event_under_a_trigger_allocates_nothing() {
    if std::env::var_os(RUN_DIR).is_none() {
        let place = tempfile::tempdir_in("/dev/shm").expect("a directory in memory");
        let status = std::process::Command::new(std::env::current_exe().expect("this program"))
            .args(["--exact", "allocations::an_event_under_a_trigger_allocates_nothing", "--nocapture"])
            .env(RUN_DIR, place.path())
            .status();
        return assert!(status.expect("it starts").success());
    }
    crate::states::under_triggers(|act| {
        let before = CALLS.with(Cell::get);
        act();
        assert_eq!(CALLS.with(Cell::get) - before, 0);
    });
}
