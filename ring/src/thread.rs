//! Per-thread state: one slot for each thread that fires, in a table that a waiter can scan.
//!
//! A thread claims a slot when it fires its first enabled event, and returns it when it ends:
//!
//! ```text
//!   FREE ──claim (CAS, first event)──▶ CLAIMED ──thread exit: rings given back──▶ FREE
//! ```
//!
//! A claim is a bounded scan with a compare-and-swap, without allocation or lock, so that a signal handler may do it. A handler that
//! interrupts a claim finds no slot yet and claims one of its own; the interrupted claim then finds that the thread has a slot, and releases
//! the one that it has just claimed.
//!
//! The table is static and has room for [`MAX_THREADS`] threads. Events of further threads, and events fired so late in a thread's life
//! that its slot is gone, are only counted, by [`unserved_events`].

mod exit;
mod scheduling;
#[cfg(posix)]
mod signals;
mod slot;
mod table;

pub use crate::counter::{add_local, add_local_wide, add_shared_wide, raise_local, take_local};
pub use scheduling::{inherit_scheduling, leave_inherited_scheduling};
#[cfg(posix)]
pub use signals::{SignalMask, block_signals};
pub use slot::{ThreadSlot, claimed, enter_fast, exit_fast};
pub(crate) use table::{
    current, high_water, in_section, is_grace_period_awaited, poll_grace_period, restrict_current_to,
    start_poll_grace_period, wait_for_grace_period,
};

use crate::counter::LocalCounter;
use crate::hint::stack_pointer;
use crate::primitive::light_fence;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

/// Maximum number of threads that can have a slot at the same time.
pub const MAX_THREADS: usize = 8192;

static UNSERVED: LocalCounter = LocalCounter::new();

/// Events for which no probe could run and nothing could be recorded: events of threads beyond [`MAX_THREADS`], events in a destructor that
/// ran after the thread had left the table, and events nested more than 64 deep.
pub fn unserved_events() -> u64 {
    UNSERVED.get()
}

/// The origin of an event that takes the full path.
#[derive(Clone, Copy, Debug)]
pub struct EventOrigin {
    /// The slot of the section entered by `enter_fast`, if any.
    slot: Option<&'static ThreadSlot>,
    /// The stack pointer in the function that the site has called.
    site: usize,
}

impl EventOrigin {
    /// In the function that the site has called, into which this is inlined: call stacks begin at its caller.
    #[inline(always)]
    pub fn from_site(slot: Option<&'static ThreadSlot>) -> Self {
        Self { slot, site: stack_pointer() }
    }
}

/// Runs `body` inside a read-side section of the calling thread: one that `enter_fast` has entered, or a new one. Counts the event if the
/// thread cannot have one.
///
/// `body` must not unwind: callers catch panics of user code inside it.
#[inline(always)]
pub fn section<R>(entered: EventOrigin, body: impl FnOnce(&'static ThreadSlot) -> R) -> Option<R> {
    let (slot, is_outermost) = if let Some(slot) = entered.slot {
        (slot, true)
    } else {
        let slot = current()?;
        (slot, slot.section.enter(light_fence))
    };
    if !is_outermost && !slot.nest() {
        count_unserved();
        return None;
    }
    slot.set_site(is_outermost, entered.site);
    let result = body(slot);
    if is_outermost {
        slot.exit();
    } else {
        slot.unnest();
    }
    Some(result)
}

/// F2, the flusher's half: every thread that begins to write an event from now on sees the caller's earlier stores. Its partner is F1.
/// Returns `false` if there was no fence: inside a section without `membarrier`, or if the kernel no longer provides it.
#[must_use]
pub(crate) fn fence_owners() -> bool {
    if crate::membarrier::is_asymmetric() {
        crate::primitive::heavy_fence()
    } else {
        !in_section() && wait_for_grace_period()
    }
}

/// Returns whether the calling thread is not inside an event that is nested in another one.
pub(crate) fn is_outermost() -> bool {
    claimed().is_none_or(|slot| !slot.is_nested())
}

/// The position of the calling thread inside an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// The index of its slot, in `0..MAX_THREADS`. Small indices are assigned first. A thread that gets a slot sees everything that the previous
    /// owner of the slot wrote (T1).
    pub index: usize,
    /// The kernel's thread id.
    pub tid: u32,
    /// True if its running event is nested in another one, as an event of a signal handler or of a probe can be.
    pub is_nested: bool,
}

/// The position of the calling thread; `None` if it has no slot, because it has not fired yet, or no longer has one.
#[inline]
pub fn position() -> Option<Position> {
    claimed().map(|slot| Position { index: slot.index(), tid: slot.tid(), is_nested: slot.is_nested() })
}

/// The index of the calling thread's slot, below [`MAX_THREADS`]; `None` as for [`position`].
#[inline]
pub fn index() -> Option<usize> {
    claimed().map(ThreadSlot::index)
}

/// Number of threads in the table whose slot index `is_counted` accepts.
pub(crate) fn count_claimed(is_counted: impl Fn(usize) -> bool) -> usize {
    table::claimed_slots().filter(|index| is_counted(*index)).count()
}

fn count_unserved() {
    UNSERVED.add_shared(1);
}

/// Stops tracing the calling thread, and does not count its events. For threads that drain channels: their own events would endlessly create
/// more work for them.
#[doc(hidden)]
pub fn never_trace_this_thread() {
    table::never_trace_current();
}

/// Keeps the code of this module loaded. Must be called before a key is switched on, and before any lock is taken.
pub(crate) fn pin_this_object() {
    exit::pin_this_object();
}

/// Prepares the prerequisites of a later claim. Must be called before a key is switched on, with the update lock held.
pub(crate) fn prepare() {
    crate::membarrier::register();
    exit::prepare(table::leave);
    crate::fork::register(&table::FORK_HOOKS);
}

/// The hook of a higher layer for a thread that gives its slot back.
pub(crate) type ExitHook = fn(&'static ThreadSlot);

static EXIT_HOOK: AtomicPtr<ExitHook> = AtomicPtr::new(null_mut());

/// Sets the function that runs, inside a section of the slot, whenever a thread gives its slot back. There is one, the hook of channels.
pub(crate) fn set_exit_hook(hook: &'static ExitHook) {
    // T2: Release pairs with the Acquire load in `run_exit_hook`: the hook finds everything stored before it was set.
    EXIT_HOOK.store(std::ptr::from_ref(hook).cast_mut(), Ordering::Release);
}

/// Runs the exit hook: the calling thread gives its slot back, or is restricted to one channel. Called inside a section of `slot`.
fn run_exit_hook(slot: &'static ThreadSlot) {
    // T2: Acquire pairs with the Release store in `set_exit_hook`.
    // SAFETY: null, or made of a `&'static ExitHook` in `set_exit_hook`.
    if let Some(hook) = unsafe { EXIT_HOOK.load(Ordering::Acquire).as_ref() } {
        hook(slot);
    }
}
