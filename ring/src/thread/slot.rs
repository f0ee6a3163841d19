//! One thread's slot in the table, and each thread's pointer to its own.

use crate::grace::{OpenSection, Section};
use crate::primitive::owner_fence;
use std::ptr::{null_mut, without_provenance_mut};
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};

/// The slot has no owner.
pub(super) const FREE: u32 = 0;
/// The slot belongs to a thread.
pub(super) const CLAIMED: u32 = 1;

/// Value of `CURRENT`: this thread had a slot and has given it back.
pub(super) const GONE: *mut ThreadSlot = without_provenance_mut(1);
/// Value of `CURRENT`: this thread is not traced. The largest address that is not a slot, after null and `GONE`.
pub(super) const UNTRACED: *mut ThreadSlot = without_provenance_mut(2);

/// Maximum nesting of events on one thread (probes, field expressions and signal handlers that fire in turn). A deeper event is not
/// served, so that an endless recursion stops here and not at the end of the stack.
const MAX_DEPTH: u32 = 64;

/// The state of a thread that fires. The section's word is at the end, so that its address does not share its lowest bits with
/// another word that is written at every event (see `channel/buffer.rs`).
#[derive(Debug)]
#[repr(C, align(64))]
pub struct ThreadSlot {
    /// [`FREE`] or [`CLAIMED`].
    pub(super) state: AtomicU32,
    /// The slot's index in the table; written by the thread that claims it.
    pub(super) index: AtomicU32,
    /// The kernel's thread id; written by the owner when it claims the slot.
    pub(super) tid: AtomicU32,
    /// Nesting depth of the callbacks of the layer above on this thread. A handler restores the old value, so plain loads and stores
    /// suffice.
    pub callback_depth: AtomicU32,
    /// Number of events that the running event is nested in. Changed like `callback_depth`.
    outer_events: AtomicU32,
    /// The section found open by the last `start_poll_grace_period`; 0 if there was none.
    polled: AtomicUsize,
    /// The number of the channels to which recording of this thread's events is restricted; 0 if there is no restriction. Written by the owner.
    pub(super) restricted_to: AtomicU64,
    /// The stack pointers in the functions that sites have called: for the outermost event, and for the event nested last; 0 if unknown. Changed
    /// like `outer_events`.
    sites: [AtomicUsize; 2],
    pub(crate) section: Section,
}

#[cfg(target_pointer_width = "64")]
const _: () = assert!(std::mem::offset_of!(ThreadSlot, section) == 56);

impl ThreadSlot {
    pub(super) const fn new() -> Self {
        Self {
            state: AtomicU32::new(FREE),
            index: AtomicU32::new(0),
            tid: AtomicU32::new(0),
            callback_depth: AtomicU32::new(0),
            outer_events: AtomicU32::new(0),
            polled: AtomicUsize::new(0),
            restricted_to: AtomicU64::new(0),
            sites: [const { AtomicUsize::new(0) }; 2],
            section: Section::new(),
        }
    }

    /// A slot whose section is always open, and that is not in the table.
    pub(super) const fn always_open() -> Self {
        Self { section: Section::always_open(), ..Self::new() }
    }

    /// The slot's index in the table, in `0..MAX_THREADS`.
    #[inline(always)]
    pub(crate) fn index(&'static self) -> usize {
        self.index.load(Ordering::Relaxed) as usize
    }

    /// Begins an event that is nested in another one; returns `false` if the nesting is too deep.
    pub(super) fn nest(&self) -> bool {
        let depth = self.outer_events.load(Ordering::Relaxed) + 1;
        let is_allowed = depth < MAX_DEPTH;
        if is_allowed {
            self.outer_events.store(depth, Ordering::Relaxed);
        }
        is_allowed
    }

    /// Ends an event begun by `nest`.
    pub(super) fn unnest(&self) {
        self.outer_events.store(self.outer_events.load(Ordering::Relaxed) - 1, Ordering::Relaxed);
    }

    /// The stack pointer in the function that the site of the running event has called; 0 if unknown. For an event that is nested and has had another
    /// event nested in it, it is the other event's: too low, so that more callers are stored.
    #[inline(always)]
    pub(crate) fn site(&self) -> usize {
        self.sites[usize::from(self.is_nested())].load(Ordering::Relaxed)
    }

    #[inline(always)]
    pub(super) fn set_site(&self, is_outermost: bool, stack: usize) {
        self.sites[usize::from(!is_outermost)].store(stack, Ordering::Relaxed);
    }

    /// Returns whether the running event is nested in another one.
    #[inline]
    pub(super) fn is_nested(&self) -> bool {
        self.outer_events.load(Ordering::Relaxed) > 0
    }

    /// Returns whether every event that the running one is nested in has reached its probes: then none of them uses a ring that it has looked up. An
    /// event in its probes counts in both numbers; an event that a signal handler or a field expression is nested in counts only in the first.
    pub(crate) fn may_change_ring(&self) -> bool {
        self.outer_events.load(Ordering::Relaxed) == self.callback_depth.load(Ordering::Relaxed)
    }

    /// Resets state that an earlier owner of the slot may have left: a thread that ends without unwinding ends inside its events.
    pub(super) fn reset_depths(&self) {
        self.callback_depth.store(0, Ordering::Relaxed);
        self.outer_events.store(0, Ordering::Relaxed);
    }

    /// Leaves the section of the outermost event.
    #[inline(always)]
    pub fn exit(&self) {
        self.section.exit();
    }

    #[inline]
    pub(crate) fn tid(&self) -> u32 {
        self.tid.load(Ordering::Relaxed)
    }

    /// Returns whether the channels with this number record the thread's events.
    pub(crate) fn is_recorded_by(&self, channel: u64) -> bool {
        let restricted_to = self.restricted_to.load(Ordering::Relaxed);
        restricted_to == 0 || restricted_to == channel
    }

    /// Remembers the section that is open now, if any, for [`has_polled_section_ended`](Self::has_polled_section_ended). The update lock is
    /// held, and the fence of the grace period (G2) has been run.
    pub(super) fn poll_section(&self) {
        self.polled.store(self.section.open().map_or(0, OpenSection::into_word), Ordering::Relaxed);
    }

    /// Returns whether the section remembered last, if any, has ended. The update lock is held.
    pub(super) fn has_polled_section_ended(&self) -> bool {
        let polled = OpenSection::from_word(self.polled.load(Ordering::Relaxed));
        polled.is_none_or(|section| self.section.has_ended(section))
    }
}

/// A dummy slot whose section is always open: a thread that must not take the fast path finds it in place of its own.
static NO_FAST_PATH: ThreadSlot = ThreadSlot::always_open();

pub(super) const fn no_fast_path() -> *mut ThreadSlot {
    (&raw const NO_FAST_PATH).cast_mut()
}

thread_local! {
    // Const-initialised and without a destructor: accessed without a function call, even in signal handlers, until the very end of the
    // thread. Atomic because signal handlers on the same thread access it; no other thread does.
    pub(super) static CURRENT: AtomicPtr<ThreadSlot> = const { AtomicPtr::new(null_mut()) };
    // The same slot if readers need no fence of their own, otherwise `NO_FAST_PATH`: one comparison covers all conditions that rule out the fast
    // path.
    pub(super) static FAST_PATH_SLOT: AtomicPtr<ThreadSlot> = const { AtomicPtr::new(no_fast_path()) };
}

/// The calling thread's slot if it has one and readers need no fence of their own; otherwise [`NO_FAST_PATH`].
#[inline(always)]
fn fast_path_slot() -> &'static ThreadSlot {
    let slot = FAST_PATH_SLOT.with(|slot| slot.load(Ordering::Relaxed));
    // SAFETY: FAST_PATH_SLOT points to NO_FAST_PATH or into the table, both statics.
    unsafe { &*slot }
}

/// The calling thread's slot, if it has one.
#[inline]
pub fn claimed() -> Option<&'static ThreadSlot> {
    let slot = CURRENT.with(|current| current.load(Ordering::Relaxed));
    if slot.addr() <= UNTRACED.addr() {
        return None;
    }
    // SAFETY: CURRENT holds null, GONE, UNTRACED (all excluded above), or a pointer into the table, a static.
    Some(unsafe { &*slot })
}

/// Enters a section of the calling thread, if the thread has a slot, is outside any section, and needs no fence of its own.
/// [`ThreadSlot::exit`] leaves it.
#[inline(always)]
pub fn enter_fast() -> Option<&'static ThreadSlot> {
    let slot = fast_path_slot();
    // G1 for the compiler only: the slot is present only if the heavy half is `membarrier`.
    slot.section.enter(owner_fence).then_some(slot)
}

/// Leaves the section that `enter_fast` entered. A separate function, so that nothing is kept in registers for it.
#[cold]
#[inline(never)]
pub fn exit_fast() {
    fast_path_slot().exit();
}
