//! The clock of the short way: for those inside a section, who need not look back whether what they read was replaced meanwhile.
//!
//! It is the line of [`tsc`](super::tsc), published a second time. Any other clock, a moment behind the line's bend, or a line that could not
//! be put anywhere (see [`rcu_slots`](super::rcu_slots)): then there is no time here, and who asks takes it from [`now`](super::now), but for
//! the clock that always says 0, which is known here.

use super::line::{Line, Segment, TickWindow, Timestamp};
use super::machine::counter_halves;
use super::rcu_slots::{RcuSlots, SLOTS};
use crate::hint::unlikely;
use crate::thread;
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What the time is taken from.
const ELSEWHERE: usize = 0;
const COUNTER: usize = 1;
const CONSTANT: usize = 2;

/// Both words that are read for a time are in one line of the cache. Changed under the update lock.
#[repr(C, align(64))]
struct FastClock {
    /// Spares those who have another clock the reading of the counter: the line is in use if it is found.
    source: AtomicUsize,
    line: RcuSlots<Place>,
}

struct Place(UnsafeCell<Segment>);

// SAFETY: written in `replace` only, while nobody can read it.
unsafe impl Sync for Place {}

impl Place {
    const fn new() -> Self {
        Self(UnsafeCell::new(Segment::NONE))
    }
}

static NOTHING: Place = Place::new();

static FAST_CLOCK: FastClock = FastClock {
    source: AtomicUsize::new(ELSEWHERE),
    // SAFETY: a static.
    line: unsafe { RcuSlots::empty(&raw const NOTHING, [const { Place::new() }; SLOTS]) },
};

/// The time now by the line, or 0 where that is the clock; `None` where the clock is another one. [Nowhere](Timestamp::INVALID) if it takes
/// more to tell it, which is before the last record of any ring.
///
/// # Safety
///
/// The caller is inside a read-side section.
#[inline(always)]
pub(crate) unsafe fn now() -> Option<Timestamp> {
    let source = FAST_CLOCK.source.load(Ordering::Relaxed);
    let (window, low) = if source == COUNTER {
        let ticks = counter_halves();
        // SAFETY: inside a section, so that nobody writes the place that is found.
        (unsafe { &*FAST_CLOCK.line.read().0.get() }.window(ticks.high), ticks.low)
    } else {
        unlikely();
        if source != CONSTANT {
            return None;
        }
        // The same steps from here on: of two forms of a moment, both would be in registers.
        (&TickWindow::INVALID, 0)
    };
    Some(window.at(low))
}

/// From here on the time is the line's, which `publish` publishes to those who take the longer way: nobody finds the new line on one way
/// while others find the old one on the other. The update lock is held.
pub(super) fn replace(line: &Line, publish: impl FnOnce()) {
    FAST_CLOCK.line.settle(thread::poll_grace_period);
    FAST_CLOCK.line.take_away();
    publish();
    // SAFETY: nobody reads the place (`RcuSlots::put`), and nobody else writes it: the update lock is held.
    FAST_CLOCK.line.put(|place| unsafe { *place.0.get() = Segment::of(line) });
    FAST_CLOCK.source.store(COUNTER, Ordering::Relaxed);
    FAST_CLOCK.line.note(thread::start_poll_grace_period);
}

/// From here on the time is always 0. No channel is open. The update lock is held.
pub(super) fn put_constant() {
    take_away();
    FAST_CLOCK.source.store(CONSTANT, Ordering::Relaxed);
}

/// From here on the time comes from elsewhere. The update lock is held.
pub(super) fn take_away() {
    FAST_CLOCK.source.store(ELSEWHERE, Ordering::Relaxed);
    FAST_CLOCK.line.take_away();
}
