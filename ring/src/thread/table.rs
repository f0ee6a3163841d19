//! The table of slots: claims, thread exits, and grace periods that wait for all slots.

use super::slot::{CLAIMED, CURRENT, FAST_PATH_SLOT, FREE, GONE, ThreadSlot, UNTRACED, claimed, no_fast_path};
use super::{MAX_THREADS, exit};
use crate::fork::ForkHooks;
use crate::grace::begin_grace_period;
use crate::primitive::light_fence;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicUsize, Ordering};

static SLOTS: [ThreadSlot; MAX_THREADS] = [const { ThreadSlot::new() }; MAX_THREADS];
/// One past the highest slot that was ever claimed: a waiter scans up to here.
static HIGH_WATER: AtomicUsize = AtomicUsize::new(0);
/// The index at which the next claim starts its scan.
static HINT: AtomicUsize = AtomicUsize::new(0);

/// Number of claimed slots, so that a claim does not scan a full table.
static CLAIMED_SLOTS: AtomicUsize = AtomicUsize::new(0);

/// The calling thread's slot, claimed now if it has none yet. `None` if the table is full or the thread has left it.
#[inline(always)]
pub(crate) fn current() -> Option<&'static ThreadSlot> {
    let slot = CURRENT.with(|current| current.load(Ordering::Relaxed));
    if slot.addr() <= UNTRACED.addr() {
        return first_event(slot);
    }
    // SAFETY: CURRENT holds null, GONE, UNTRACED (all excluded above), or a pointer into SLOTS, a static.
    Some(unsafe { &*slot })
}

/// Returns whether the calling thread is inside a read-side section, that is, inside a probe or a marker.
pub(crate) fn in_section() -> bool {
    claimed().is_some_and(|slot| slot.section.is_open())
}

#[cold]
#[inline(never)]
fn first_event(slot: *mut ThreadSlot) -> Option<&'static ThreadSlot> {
    if !slot.is_null() {
        if slot == GONE {
            super::count_unserved();
        }
        return None;
    }
    let claimed = claim()?;
    claimed.tid.store(exit::thread_id(), Ordering::Relaxed);
    let claimed_ptr = std::ptr::from_ref(claimed).cast_mut();
    // Relaxed: only this thread and its signal handlers access CURRENT.
    let installed =
        CURRENT.with(|current| current.compare_exchange(null_mut(), claimed_ptr, Ordering::Relaxed, Ordering::Relaxed));
    match installed {
        Ok(_) => {
            exit::at_thread_exit(claimed);
            if crate::membarrier::is_asymmetric() {
                FAST_PATH_SLOT.with(|slot| slot.store(claimed_ptr, Ordering::Relaxed));
            }
            Some(claimed)
        }
        Err(by_handler) => {
            release(claimed);
            // SAFETY: CURRENT was null before, and a signal handler that ran since has stored a pointer into SLOTS.
            Some(unsafe { &*by_handler })
        }
    }
}

/// Stops tracing the calling thread. For threads that drain channels. Does nothing inside an event.
pub(crate) fn never_trace_current() {
    if in_section() {
        return;
    }
    FAST_PATH_SLOT.with(|slot| slot.store(no_fast_path(), Ordering::Relaxed));
    let slot = CURRENT.with(|current| current.swap(UNTRACED, Ordering::Relaxed));
    if slot.addr() > UNTRACED.addr() {
        // SAFETY: a pointer into SLOTS, a static. It was this thread's own, which does not use it again.
        give_back(unsafe { &*slot });
    }
}

/// Restricts the recording of the calling thread's events to the channels with this number, until the thread ends. Returns `false`, with nothing
/// changed, inside an event, and if the thread has no slot.
pub(crate) fn restrict_current_to(channel: u64) -> bool {
    if in_section() {
        return false;
    }
    let Some(slot) = current() else { return false };
    // Before the rings are given back, so that no signal handler takes another one in between. Relaxed: only this thread reads it.
    slot.restricted_to.store(channel, Ordering::Relaxed);
    slot.section.enter(light_fence);
    super::run_exit_hook(slot);
    slot.exit();
    true
}

/// One past the highest slot that was ever claimed.
pub(crate) fn high_water() -> usize {
    HIGH_WATER.load(Ordering::Relaxed)
}

/// The indices of the currently claimed slots.
pub(super) fn claimed_slots() -> impl Iterator<Item = usize> {
    // Relaxed: a thread that comes or goes meanwhile may be missed, or counted.
    let is_claimed = |index: &usize| SLOTS[*index].state.load(Ordering::Relaxed) == CLAIMED;
    (0..HIGH_WATER.load(Ordering::Relaxed)).filter(is_claimed)
}

fn claim() -> Option<&'static ThreadSlot> {
    if CLAIMED_SLOTS.load(Ordering::Relaxed) >= MAX_THREADS {
        super::count_unserved();
        return None;
    }
    let start = HINT.load(Ordering::Relaxed);
    for step in 0..MAX_THREADS {
        let index = (start + step) % MAX_THREADS;
        let slot = &SLOTS[index];
        // T1: Acquire pairs with the Release store in `free`: the new owner may reset the state that the previous one left in the slot.
        if slot.state.load(Ordering::Relaxed) == FREE
            && slot.state.compare_exchange(FREE, CLAIMED, Ordering::Acquire, Ordering::Relaxed).is_ok()
        {
            HINT.store(index + 1, Ordering::Relaxed);
            CLAIMED_SLOTS.fetch_add(1, Ordering::Relaxed);
            // Before the first `enter`, whose fence (G1) makes it visible to any waiter that must look at this slot.
            HIGH_WATER.fetch_max(index + 1, Ordering::Relaxed);
            slot.index.store(index as u32, Ordering::Relaxed);
            slot.reset_depths();
            slot.restricted_to.store(0, Ordering::Relaxed);
            return Some(slot);
        }
    }
    super::count_unserved();
    None
}

fn release(slot: &'static ThreadSlot) {
    CLAIMED_SLOTS.fetch_sub(1, Ordering::Relaxed);
    free(slot);
}

fn free(slot: &'static ThreadSlot) {
    HINT.fetch_min(slot.index(), Ordering::Relaxed);
    // T1: pairs with the Acquire in `claim`.
    slot.state.store(FREE, Ordering::Release);
}

/// Ends a thread: gives its rings back to their channels, and its slot to the table.
pub(super) fn leave(slot: &'static ThreadSlot) {
    // First, so that a signal handler that runs from here on cannot take a ring for a slot that is being given back.
    FAST_PATH_SLOT.with(|slot| slot.store(no_fast_path(), Ordering::Relaxed));
    let previous = CURRENT.with(|current| current.swap(GONE, Ordering::Relaxed));
    // An untraced thread has already given its slot back.
    if previous != UNTRACED {
        give_back(slot);
    }
}

fn give_back(slot: &'static ThreadSlot) {
    slot.section.enter(light_fence);
    super::run_exit_hook(slot);
    // Also ends an earlier section: a thread that ends without unwinding may still be inside an event.
    slot.exit();
    release(slot);
}

/// Waits for a grace period: when it returns, every section that was open in any thread has ended.
///
/// The caller is outside of any section and holds no lock. Returns `false` if the kernel no longer provides the fence (G2): the state of the readers
/// is then unknown, and nothing may be freed.
#[must_use]
pub(crate) fn wait_for_grace_period() -> bool {
    if !begin_grace_period() {
        return false;
    }
    GRACE_WAITS.fetch_add(1, Ordering::Relaxed);
    let end = HIGH_WATER.load(Ordering::Relaxed);
    for slot in &SLOTS[..end] {
        slot.section.wait_until_ended();
    }
    GRACE_WAITS.fetch_sub(1, Ordering::Relaxed);
    true
}

/// Number of threads that wait for a grace period. A hint, so Relaxed suffices.
static GRACE_WAITS: AtomicUsize = AtomicUsize::new(0);

/// Returns whether a thread of this process waits for a grace period.
pub(crate) fn is_grace_period_awaited() -> bool {
    GRACE_WAITS.load(Ordering::Relaxed) > 0
}

/// Begins a grace period without waiting for it; [`poll_grace_period`] later returns whether it has elapsed. Returns `false` if the kernel no longer
/// provides the fence (G2). The update lock is held.
#[must_use]
pub(crate) fn start_poll_grace_period() -> bool {
    if !begin_grace_period() {
        return false;
    }
    for slot in &SLOTS[..HIGH_WATER.load(Ordering::Relaxed)] {
        slot.poll_section();
    }
    true
}

/// Returns whether the grace period begun by the latest [`start_poll_grace_period`] has elapsed. The update lock is held.
pub(crate) fn poll_grace_period() -> bool {
    SLOTS[..HIGH_WATER.load(Ordering::Relaxed)].iter().all(ThreadSlot::has_polled_section_ended)
}

/// See [`reset_others_after_fork`].
pub(super) static FORK_HOOKS: ForkHooks =
    ForkHooks { before: || (), in_parent: || (), in_child: reset_others_after_fork };

/// In the child after fork: frees the slots of the other threads, which do not exist here.
fn reset_others_after_fork() {
    let own = CURRENT.with(|current| current.load(Ordering::Relaxed)).cast_const();
    let mut claimed = 0;
    for slot in &SLOTS[..HIGH_WATER.load(Ordering::Relaxed)] {
        if std::ptr::eq(slot, own) {
            slot.tid.store(exit::thread_id(), Ordering::Relaxed);
            claimed = 1;
        } else if slot.state.load(Ordering::Relaxed) == CLAIMED {
            slot.section.reset();
            free(slot);
        }
    }
    // Recounted, not decremented: a thread of the parent that was claiming or releasing a slot during the fork may have changed only one of
    // the slot and the count.
    CLAIMED_SLOTS.store(claimed, Ordering::Relaxed);
    GRACE_WAITS.store(0, Ordering::Relaxed);
}
