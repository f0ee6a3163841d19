//! The clock of the fast path, for readers inside a section, which need no retry (see [`rcu_slots`](super::rcu_slots)).
//!
//! It holds the first part of the line of [`tsc`](super::tsc), published a second time. It gives no time while another clock is in use, after
//! the line's bend, and while no slot is free; the caller then takes the time from [`now`](super::now). The clock that is always 0 is the one
//! exception: it is known here too.

use super::line::{Line, Segment, TickWindow, Timestamp};
use super::machine::counter_halves;
use super::rcu_slots::{RcuSlots, SLOTS};
use crate::hint::unlikely;
use crate::thread;
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicUsize, Ordering};

// The values of `FastClock::source`.
const NONE: usize = 0;
const COUNTER: usize = 1;
const CONSTANT: usize = 2;

/// Both words that are read for a time are in one cache line. Changed under the update lock.
#[repr(C, align(64))]
struct FastClock {
    /// Saves reading the counter where another clock is in use. Only a hint: a reader that finds the line uses it.
    source: AtomicUsize,
    line: RcuSlots<SegmentSlot>,
}

struct SegmentSlot(UnsafeCell<Segment>);

// SAFETY: written in `replace` only, to a slot that `RcuSlots` gives out as free, which no reader has.
unsafe impl Sync for SegmentSlot {}

impl SegmentSlot {
    const fn new() -> Self {
        Self(UnsafeCell::new(Segment::NONE))
    }
}

static FALLBACK: SegmentSlot = SegmentSlot::new();

static FAST_CLOCK: FastClock = FastClock {
    source: AtomicUsize::new(NONE),
    // SAFETY: FALLBACK is a static.
    line: unsafe { RcuSlots::empty(&raw const FALLBACK, [const { SegmentSlot::new() }; SLOTS]) },
};

/// The time now: by the line, or 0 if that is the clock. `None` if another clock is in use. [Invalid](Timestamp::INVALID), which is before
/// the last record of any ring, if the line is not available or has bent.
///
/// # Safety
///
/// The caller is inside a read-side section.
#[inline(always)]
pub(crate) unsafe fn now() -> Option<Timestamp> {
    let source = FAST_CLOCK.source.load(Ordering::Relaxed);
    let (window, low) = if source == COUNTER {
        let ticks = counter_halves();
        // SAFETY: the caller is inside a section, so the slot that `read` finds is not written while it is used.
        (unsafe { &*FAST_CLOCK.line.read().0.get() }.window(ticks.high), ticks.low)
    } else {
        unlikely();
        if source != CONSTANT {
            return None;
        }
        // An invalid timestamp is 0, the time of this clock. Both branches give a window, so that one form of timestamp is in registers.
        (&TickWindow::INVALID, 0)
    };
    Some(window.at(low))
}

/// Replaces the line. Calls `publish`, which publishes it to the full path, while the fast path has none: no reader finds the new line on one
/// path while another finds the old one on the other. The update lock is held.
pub(super) fn replace(line: &Line, publish: impl FnOnce()) {
    FAST_CLOCK.line.reclaim(thread::poll_grace_period);
    FAST_CLOCK.line.unpublish();
    publish();
    // SAFETY: the slot is free, so no reader has it, and the update lock excludes other writers.
    FAST_CLOCK.line.publish(|slot| unsafe { *slot.0.get() = Segment::of(line) });
    FAST_CLOCK.source.store(COUNTER, Ordering::Relaxed);
    FAST_CLOCK.line.start_poll(thread::start_poll_grace_period);
}

/// Makes the time 0 from here on. No channel is open. The update lock is held.
pub(super) fn use_constant() {
    disable();
    FAST_CLOCK.source.store(CONSTANT, Ordering::Relaxed);
}

/// Leaves the time to the full path from here on. The update lock is held.
pub(super) fn disable() {
    FAST_CLOCK.source.store(NONE, Ordering::Relaxed);
    FAST_CLOCK.line.unpublish();
}
