//! One thread's slot in the table.

use crate::grace::{OpenSection, Section};
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

/// The slot has no owner.
pub(super) const FREE: u32 = 0;
/// The slot belongs to a thread.
pub(super) const CLAIMED: u32 = 1;

/// How deeply events can nest on one thread (probes, field expressions and signal handlers that fire in turn). A deeper event is not
/// served, so that an endless recursion stops here and not at the end of the stack.
const MAX_DEPTH: u32 = 64;

/// The per-thread state of a thread that fires. The section's word is at the end, so that its address does not share its lowest bits with
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
    /// How deeply the layer above has nested its callbacks on this thread. A handler leaves it as it finds it, so plain loads and stores
    /// suffice.
    pub callback_depth: AtomicU32,
    /// The number of events that the running event is nested in. Changed as `callback_depth` is.
    outer_events: AtomicU32,
    /// The section that was open when `start_poll_grace_period` last looked; 0 if none was.
    polled: AtomicUsize,
    /// The number of the channels that alone record this thread's events; 0 if all do. Written by the owner.
    pub(super) restricted_to: AtomicU64,
    _to_section: [u64; 2],
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
            _to_section: [0; 2],
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

    /// Begins an event that is nested in another one; `false` if it is nested too deep.
    pub(super) fn nest(&self) -> bool {
        let depth = self.outer_events.load(Ordering::Relaxed) + 1;
        let is_allowed = depth < MAX_DEPTH;
        if is_allowed {
            self.outer_events.store(depth, Ordering::Relaxed);
        }
        is_allowed
    }

    /// Ends an event that `nest` began.
    pub(super) fn unnest(&self) {
        self.outer_events.store(self.outer_events.load(Ordering::Relaxed) - 1, Ordering::Relaxed);
    }

    /// Whether the running event is nested in another one.
    pub(super) fn is_nested(&self) -> bool {
        self.outer_events.load(Ordering::Relaxed) > 0
    }

    /// Resets what an earlier owner of the slot may have left: a thread that ends without unwinding ends inside its events.
    pub(super) fn reset_depths(&self) {
        self.callback_depth.store(0, Ordering::Relaxed);
        self.outer_events.store(0, Ordering::Relaxed);
    }

    /// Leaves the section of the outermost event.
    #[inline(always)]
    pub fn exit(&self) {
        self.section.exit();
    }

    pub(crate) fn tid(&self) -> u32 {
        self.tid.load(Ordering::Relaxed)
    }

    /// Whether the channels with this number record the thread's events.
    pub(crate) fn is_recorded_by(&self, channel: u64) -> bool {
        let restricted_to = self.restricted_to.load(Ordering::Relaxed);
        restricted_to == 0 || restricted_to == channel
    }

    /// Remembers the section that is open now, if any, for [`has_polled_section_ended`](Self::has_polled_section_ended). The update lock is
    /// held, and the fence of the grace period (G2) has been run.
    pub(super) fn poll_section(&self) {
        self.polled.store(self.section.open().map_or(0, OpenSection::into_word), Ordering::Relaxed);
    }

    /// Whether the section that was remembered last, if any, has ended. The update lock is held.
    pub(super) fn has_polled_section_ended(&self) -> bool {
        let polled = OpenSection::from_word(self.polled.load(Ordering::Relaxed));
        polled.is_none_or(|section| self.section.has_ended(section))
    }
}
