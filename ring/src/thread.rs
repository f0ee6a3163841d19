//! The threads that fire: one slot each, in a table that a waiter can walk.
//!
//! A slot is claimed when a thread fires its first event that is switched on, and returned when the thread ends:
//!
//! ```text
//!   FREE ──claim (CAS, first event)──▶ CLAIMED ──thread exit: rings given back──▶ FREE
//! ```
//!
//! Claiming is a bounded scan with a compare-and-swap: no allocation, no lock, so that a signal handler may do it. A handler
//! that interrupts the claim finds no slot yet and claims one of its own; the interrupted claim then sees that the thread has
//! a slot and gives its own back.
//!
//! The table is static and bounded by [`MAX_THREADS`]. A thread beyond that is not served: its events are counted by
//! [`unserved_events`]. So are events fired so late in a thread's life that its slot is gone.

mod exit;
mod table;

pub use table::ThreadSlot;
pub use table::claimed;
pub(crate) use table::{current, in_section, keep_current_for, note_sections, noted_have_passed, wait_for_all};

use crate::counter::LocalCounter;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

/// How many threads can be inside tracepoints at a time.
pub const MAX_THREADS: usize = 8192;

/// How deep events nest on one thread (probes, field expressions and signal handlers that fire in turn) before the next one is
/// not served: an endless recursion ends here, not at the end of the stack.
const MAX_DEPTH: usize = 64;

static UNSERVED: LocalCounter = LocalCounter::new();

/// Events that fired where no probe could run and nothing could be recorded: in a thread beyond [`MAX_THREADS`], in a
/// destructor that ran after the thread had left the table, or 64 events deep in one another.
pub fn unserved_events() -> u64 {
    UNSERVED.get()
}

/// Runs `body` inside a read-side section of the calling thread; counts the event where the thread cannot have one.
///
/// `body` must not unwind: callers catch panics of user code inside it.
#[inline(always)]
pub fn section<R>(body: impl FnOnce(&'static ThreadSlot) -> R) -> Option<R> {
    let slot = current()?;
    if slot.section.depth() >= MAX_DEPTH {
        count_unserved();
        return None;
    }
    slot.section.enter();
    let result = body(slot);
    slot.section.exit();
    Some(result)
}

/// F2: whatever the caller stored before is seen by every thread that begins to write an event from here on. `false` if it cannot
/// be had: inside a section without `membarrier`, or when the kernel refuses that by now.
#[must_use]
pub(crate) fn owners_saw() -> bool {
    if crate::membarrier::is_asymmetric() { crate::primitive::heavy_fence() } else { !in_section() && wait_for_all() }
}

/// Enters a section of the calling thread, if that is outside any, has a slot, and needs no fence of its own. To be followed by
/// `exit_outermost` of its section.
#[inline(always)]
pub fn enter_outermost() -> Option<&'static ThreadSlot> {
    let slot = table::express();
    slot.section.enter_outermost().then_some(slot)
}

/// Leaves the section that `enter_outermost` has entered.
#[cold]
#[inline(never)]
pub fn exit_outermost() {
    table::express().section.exit_outermost();
}

/// Whether the calling thread is inside one event, and not inside another one in that.
pub(crate) fn is_outermost() -> bool {
    claimed().is_none_or(|slot| slot.section.depth() <= 1)
}

fn count_unserved() {
    UNSERVED.add_shared(1);
}

/// The calling thread is not traced from here on, and its events are not counted: for threads that drain channels, whose own events
/// would make work for them without end.
#[doc(hidden)]
pub fn never_trace_this_thread() {
    table::never_trace_current();
}

/// Keeps the code of this module loaded. Called by everything that switches a key on, before it holds a lock.
pub(crate) fn pin_this_object() {
    exit::pin_this_object();
}

/// Prepares what a later claim needs. Called by everything that switches a key on, before it does; under the update lock.
pub(crate) fn prepare() {
    crate::membarrier::choose();
    exit::prepare();
    crate::fork::register(&table::FORK_HOOKS);
}

/// What a part above this one does when a thread gives its slot back.
pub(crate) type ExitHook = fn(&'static ThreadSlot);

static EXIT_HOOK: AtomicPtr<ExitHook> = AtomicPtr::new(null_mut());

/// From here on `hook` runs, inside a section of the slot, whenever a thread gives its slot back. There is one hook: that of channels.
pub(crate) fn set_exit_hook(hook: &'static ExitHook) {
    // T2: Release, paired with the load in `run_exit_hook`: what the hook uses is there when it runs.
    EXIT_HOOK.store(std::ptr::from_ref(hook).cast_mut(), Ordering::Release);
}

/// The calling thread's slot leaves the table, or is kept for one channel alone. Called inside a section of `slot`.
fn run_exit_hook(slot: &'static ThreadSlot) {
    // SAFETY: null, or a `&'static ExitHook` (`set_exit_hook`). T2: pairs with the store there.
    if let Some(hook) = unsafe { EXIT_HOOK.load(Ordering::Acquire).as_ref() } {
        hook(slot);
    }
}
