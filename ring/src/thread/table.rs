//! The table of slots and the way from a thread to its own.

use super::{MAX_THREADS, exit};
use crate::fork::ForkHooks;
use crate::grace::{OpenSection, Section, grace_period_begins};
use std::ptr::{null_mut, without_provenance_mut};
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};

const FREE: u32 = 0;
const CLAIMED: u32 = 1;

/// What the process knows of one thread that fires. The section's word is at the end, where no other word that is written at every
/// event has the same lowest bits in its address (see `channel/buffer.rs`).
#[derive(Debug)]
#[repr(C, align(64))]
pub struct ThreadSlot {
    state: AtomicU32,
    /// The slot's place in the table; written by whoever claims it.
    index: AtomicU32,
    /// The kernel's thread id; written by the owner when it claims the slot.
    tid: AtomicU32,
    /// How many functions of the program the layer above is inside of, on this thread. Balanced by the owner and its handlers, so plain loads and stores do.
    pub callback_depth: AtomicU32,
    /// The section that was open when sections were noted; 0 if none was.
    noted: AtomicUsize,
    /// The number of the channels that the thread's events are for; 0: all are served. Written by the owner.
    only: AtomicU64,
    _to_section: [u64; 3],
    pub(crate) section: Section,
}

#[cfg(target_pointer_width = "64")]
const _: () = assert!(std::mem::offset_of!(ThreadSlot, section) == 56);

impl ThreadSlot {
    const fn new() -> Self {
        Self {
            state: AtomicU32::new(FREE),
            index: AtomicU32::new(0),
            tid: AtomicU32::new(0),
            callback_depth: AtomicU32::new(0),
            noted: AtomicUsize::new(0),
            only: AtomicU64::new(0),
            _to_section: [0; 3],
            section: Section::new(),
        }
    }

    /// The slot's place in the table, in `0..MAX_THREADS`.
    #[inline(always)]
    pub(crate) fn index(&'static self) -> usize {
        self.index.load(Ordering::Relaxed) as usize
    }

    /// Leaves the section that [`enter_outermost`](super::enter_outermost) has entered.
    #[inline(always)]
    pub fn exit_outermost(&self) {
        self.section.exit_outermost();
    }

    pub(crate) fn tid(&self) -> u32 {
        self.tid.load(Ordering::Relaxed)
    }

    /// Whether the channel with this number gets the thread's events.
    pub(crate) fn serves(&self, channel: u64) -> bool {
        let only = self.only.load(Ordering::Relaxed);
        only == 0 || only == channel
    }
}

static SLOTS: [ThreadSlot; MAX_THREADS] = [const { ThreadSlot::new() }; MAX_THREADS];
/// One past the highest slot that was ever claimed: how far a waiter has to look.
static HIGH_WATER: AtomicUsize = AtomicUsize::new(0);
/// Where the next claim starts to look.
static HINT: AtomicUsize = AtomicUsize::new(0);

/// Stands for "this thread had a slot and gave it back".
const GONE: *mut ThreadSlot = without_provenance_mut(1);
/// Stands for "this thread is not traced". The last of the addresses that are no slot: null, `GONE`, `UNTRACED`.
const UNTRACED: *mut ThreadSlot = without_provenance_mut(2);

/// How many slots are claimed: with a full table nobody has to look through it.
static CLAIMED_SLOTS: AtomicUsize = AtomicUsize::new(0);

/// A slot that is inside a section for ever: what a thread finds that must not take the short way.
static BUSY: ThreadSlot = ThreadSlot { section: Section::open_for_ever(), ..ThreadSlot::new() };

const fn busy() -> *mut ThreadSlot {
    (&raw const BUSY).cast_mut()
}

thread_local! {
    // Const-initialised and without a destructor: reached without a call, usable from signal handlers and to the last moment
    // of the thread. Atomic for the sake of handlers on the same thread, never shared.
    static CURRENT: AtomicPtr<ThreadSlot> = const { AtomicPtr::new(null_mut()) };
    // The same, where readers need no fence of their own; else `BUSY`. One comparison for all that bars the short way.
    static EXPRESS: AtomicPtr<ThreadSlot> = const { AtomicPtr::new(busy()) };
}

/// The calling thread's slot, claimed now if it has none yet. `None` if the table is full or the thread has left it.
#[inline(always)]
pub(crate) fn current() -> Option<&'static ThreadSlot> {
    let slot = CURRENT.with(|current| current.load(Ordering::Relaxed));
    if slot.addr() <= UNTRACED.addr() {
        return first_event(slot);
    }
    // SAFETY: pointers in CURRENT other than those up to UNTRACED point into SLOTS, a static.
    Some(unsafe { &*slot })
}

/// The calling thread's slot, if it has one, and readers need no fence of their own; else [`BUSY`].
#[inline(always)]
pub(super) fn express() -> &'static ThreadSlot {
    let slot = EXPRESS.with(|express| express.load(Ordering::Relaxed));
    // SAFETY: pointers in EXPRESS are to BUSY, or into SLOTS, both statics.
    unsafe { &*slot }
}

/// The calling thread's slot, if it has one.
pub fn claimed() -> Option<&'static ThreadSlot> {
    let slot = CURRENT.with(|current| current.load(Ordering::Relaxed));
    if slot.addr() <= UNTRACED.addr() {
        return None;
    }
    // SAFETY: pointers in CURRENT other than those up to UNTRACED point into SLOTS, a static.
    Some(unsafe { &*slot })
}

/// Whether the calling thread is inside a read-side section, that is, inside a probe or a marker.
pub(crate) fn in_section() -> bool {
    let slot = CURRENT.with(|current| current.load(Ordering::Relaxed));
    // SAFETY: pointers in CURRENT other than those up to UNTRACED point into SLOTS, a static.
    slot.addr() > UNTRACED.addr() && unsafe { &*slot }.section.depth() > 0
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
    // Relaxed: only this thread and its signal handlers look at CURRENT.
    let installed =
        CURRENT.with(|current| current.compare_exchange(null_mut(), claimed_ptr, Ordering::Relaxed, Ordering::Relaxed));
    match installed {
        Ok(_) => {
            exit::at_thread_exit(claimed);
            if crate::membarrier::is_asymmetric() {
                EXPRESS.with(|express| express.store(claimed_ptr, Ordering::Relaxed));
            }
            Some(claimed)
        }
        Err(by_handler) => {
            release(claimed);
            // SAFETY: a signal handler that ran in between installed a pointer into SLOTS.
            Some(unsafe { &*by_handler })
        }
    }
}

/// From here on the calling thread is as if nothing were switched on: for the threads that move what others record. Does nothing inside an
/// event.
pub(crate) fn never_trace_current() {
    if in_section() {
        return;
    }
    EXPRESS.with(|express| express.store(busy(), Ordering::Relaxed));
    let slot = CURRENT.with(|current| current.swap(UNTRACED, Ordering::Relaxed));
    if slot.addr() > UNTRACED.addr() {
        // SAFETY: a pointer into SLOTS, a static. It was this thread's, which does not use it again.
        give_back(unsafe { &*slot });
    }
}

/// From here on, until it ends, the calling thread's events are for the channels with this number alone. `false`, with nothing done, inside an
/// event, and where the thread has no slot.
pub(crate) fn keep_current_for(channel: u64) -> bool {
    if in_section() {
        return false;
    }
    let Some(slot) = current() else { return false };
    // Before the rings are given back, so that no handler of a signal takes another one meanwhile. Relaxed: the thread's own.
    slot.only.store(channel, Ordering::Relaxed);
    slot.section.enter();
    super::run_exit_hook(slot);
    slot.section.exit();
    true
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
        // T1: Acquire pairs with the Release store in `free`: what the previous owner left in the slot is ours to reset.
        if slot.state.load(Ordering::Relaxed) == FREE
            && slot.state.compare_exchange(FREE, CLAIMED, Ordering::Acquire, Ordering::Relaxed).is_ok()
        {
            HINT.store(index + 1, Ordering::Relaxed);
            CLAIMED_SLOTS.fetch_add(1, Ordering::Relaxed);
            // Before the first `enter`, whose fence (G1) makes it visible to any waiter that must look at this slot.
            HIGH_WATER.fetch_max(index + 1, Ordering::Relaxed);
            slot.index.store(index as u32, Ordering::Relaxed);
            slot.callback_depth.store(0, Ordering::Relaxed);
            slot.only.store(0, Ordering::Relaxed);
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

/// The thread ends: its rings go back to their channels, its slot to the table.
pub(super) fn leave(slot: &'static ThreadSlot) {
    // First of all, so that a signal handler that comes from here on cannot take a ring for a slot that is given up.
    EXPRESS.with(|express| express.store(busy(), Ordering::Relaxed));
    let was = CURRENT.with(|current| current.swap(GONE, Ordering::Relaxed));
    // A thread that is not traced has given its slot back before.
    if was != UNTRACED {
        give_back(slot);
    }
}

fn give_back(slot: &'static ThreadSlot) {
    slot.section.enter();
    super::run_exit_hook(slot);
    // Also that of an event which the thread has not come back to: where a thread ends without unwinding, it may be in one.
    slot.section.end();
    release(slot);
}

/// Waits for a grace period: every section open now, in any thread, has ended when it returns.
///
/// The caller is outside any section and holds no lock. `false` if the kernel has stopped giving the fence that a wait begins
/// with: then nothing is known of the threads, and nothing may be freed.
#[must_use]
pub(crate) fn wait_for_all() -> bool {
    if !grace_period_begins() {
        return false;
    }
    let end = HIGH_WATER.load(Ordering::Relaxed);
    for slot in &SLOTS[..end] {
        slot.section.wait_until_passed();
    }
    true
}

/// Begins a grace period, and notes the sections that are open, for which [`noted_have_passed`] asks some time later. `false` if the
/// kernel has stopped giving the fence. The control lock is held.
#[must_use]
pub(crate) fn note_sections() -> bool {
    if !grace_period_begins() {
        return false;
    }
    for slot in &SLOTS[..HIGH_WATER.load(Ordering::Relaxed)] {
        slot.noted.store(slot.section.open().map_or(0, OpenSection::into_word), Ordering::Relaxed);
    }
    true
}

/// Whether all sections have ended that were noted last. The control lock is held.
pub(crate) fn noted_have_passed() -> bool {
    SLOTS[..HIGH_WATER.load(Ordering::Relaxed)].iter().all(|slot| {
        let noted = OpenSection::from_word(slot.noted.load(Ordering::Relaxed));
        noted.is_none_or(|section| slot.section.has_passed(section))
    })
}

/// Around a fork: see `reset_others_after_fork`.
pub(super) static FORK_HOOKS: ForkHooks =
    ForkHooks { before: || (), in_parent: || (), in_child: reset_others_after_fork };

/// In the child after fork: the other threads do not exist here, so nothing of theirs is open.
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
    // Not counted down: a thread of the parent that was about to claim a slot, or to give it back, may have changed only one of
    // the two, the slot and the count.
    CLAIMED_SLOTS.store(claimed, Ordering::Relaxed);
}
