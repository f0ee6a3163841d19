//! The clock for readers inside a read-side section, which need no retry (see [`rcu_slots`](super::rcu_slots)): the clock of the fast path, and of
//! [`now_in_section`](super::now_in_section).
//!
//! It holds the first part of the line of [`tsc`](super::tsc), published a second time. It gives no time while another clock is in use, after the
//! line's bend, and while no slot is free; the caller then takes the time from [`now`](super::now). The only exception is the clock that is always 0,
//! which is also available here.

use super::line::{HALF, Line, SHIFT};
use super::machine::counter_halves;
use super::rcu_slots::{RcuSlots, SLOTS};
use crate::hint::{opaque, opaque_ref, unlikely};
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
    /// Avoids reading the counter if another clock is in use. Only a hint: a reader that finds the line uses it.
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

/// The current time: by the line, or 0 if that is the clock. `None` if another clock is in use. [Invalid](Timestamp::INVALID), which is before
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
        // An invalid timestamp is 0, the time of this clock. Both branches return a window, so that only one form of timestamp is in registers.
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

/// Makes the time 0 from now on. No channel is open. The update lock is held.
pub(super) fn use_constant() {
    disable();
    FAST_CLOCK.source.store(CONSTANT, Ordering::Relaxed);
}

/// Leaves the time to the full path from now on. The update lock is held.
pub(super) fn disable() {
    FAST_CLOCK.source.store(NONE, Ordering::Relaxed);
    FAST_CLOCK.line.unpublish();
}

/// The shift of the time in a record's header word, above the 16 bits of the event id.
pub(crate) const TIME_SHIFT: u32 = u16::BITS;

/// A point in time, as a base and an offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timestamp {
    pub(crate) base: TimestampBase,
    pub(crate) offset: u64,
}

/// The base of timestamps, in the two forms in which a record needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TimestampBase {
    /// Time in ns.
    pub(crate) time: u64,
    /// The same time as in a record's header word, with the event id 0.
    pub(crate) word: u64,
}

impl TimestampBase {
    const fn at(time: u64) -> Self {
        Self { time, word: time << TIME_SHIFT }
    }
}

impl Timestamp {
    /// No time: earlier than every record whose time comes from the counter.
    pub const INVALID: Self = Self::at(0);

    /// The timestamp at `time`, in ns.
    #[inline(always)]
    pub const fn at(time: u64) -> Self {
        Self { base: TimestampBase::at(time), offset: 0 }
    }

    /// The time in ns.
    #[inline(always)]
    pub const fn time(self) -> u64 {
        self.base.time.wrapping_add(self.offset)
    }
}

/// Number of windows of a segment: with the fastest counter, the longest pause between two lines spans three.
const WINDOWS: usize = 4;

/// The part of a line before its bend, in the form with the shortest dependency chain from the counter to the timestamp.
///
/// ```text
///   ticks:  upper half  │     h     │   h + 1   │   h + 2   │      windows of 2³² ticks
///                             ●─────┼───────────┼───────────●
///                           base                          bend, where a window ends
/// ```
///
/// Within a window only the lower half of the counter is multiplied, and the sum has 64 bits, because the time at which the window begins
/// is rounded down. So the time is up to 1 ns earlier than the line's; it is still monotonic.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
struct Segment {
    /// The upper half of the counter in the first window.
    first: u64,
    /// The window after the last valid one, and all following ones, are invalid; there is at least one invalid window.
    windows: [TickWindow; WINDOWS + 1],
}

/// All data from which a timestamp in the window is computed, so that one register suffices to address them.
#[derive(Clone, Copy, Debug)]
struct TickWindow {
    /// Nanoseconds per tick, in units of 2⁻⁶⁴.
    rate: u64,
    /// The timestamp at which the lower half is 0.
    base: TimestampBase,
}

impl TickWindow {
    /// All timestamps in it are [invalid](Timestamp::INVALID).
    const INVALID: Self = Self { rate: 0, base: Timestamp::INVALID.base };

    /// The timestamp at which the lower half of the counter is `low`.
    #[inline(always)]
    fn at(&self, low: u64) -> Timestamp {
        let Self { rate, base } = *opaque_ref(self);
        let offset = ((u128::from(low) * u128::from(rate)) >> 64) as u64;
        Timestamp { base, offset }
    }
}

impl Segment {
    /// A segment without valid windows.
    const NONE: Self = Self { first: u64::MAX, windows: [TickWindow::INVALID; WINDOWS + 1] };

    /// The windows of a line up to its bend, as far as the counter does not overflow in them; the first one also covers ticks before the
    /// base. No windows if a tick takes a nanosecond or longer.
    fn of(line: &Line) -> Self {
        let Line { base_tsc, base_ns, bent_rate, bend, .. } = *line;
        let first = base_tsc >> HALF;
        let end = u128::from(base_tsc) + u128::from(bend.max(0).cast_unsigned());
        if !(0..1 << SHIFT).contains(&bent_rate) {
            return Self::NONE;
        }
        let rate = bent_rate.cast_unsigned() << (64 - SHIFT);
        // The time at which the counter was 0, modulo 2¹²⁸: meaningful only as a part of the sum below.
        let at_zero = (u128::from(base_ns) << 64).wrapping_sub(u128::from(base_tsc) * u128::from(rate));
        let window = |at: usize| {
            if at == WINDOWS || u128::from(first + at as u64 + 1) << HALF > end.min(1 << 64) {
                return TickWindow::INVALID;
            }
            let zero = u128::from(first + at as u64) << HALF;
            let base = TimestampBase::at((zero.wrapping_mul(rate.into()).wrapping_add(at_zero) >> 64) as u64);
            TickWindow { rate, base }
        };
        Self { first, windows: std::array::from_fn(window) }
    }

    /// The window for the upper half of the counter; [invalid](TickWindow::INVALID) outside of the segment.
    #[inline(always)]
    fn window(&self, high: u64) -> &TickWindow {
        if high == self.first {
            &self.windows[0]
        } else {
            unlikely();
            let mut at = high.wrapping_sub(self.first) as usize;
            if at > WINDOWS {
                // A branch needs no register, in contrast to `min`.
                at = opaque(WINDOWS);
            }
            // SAFETY: `at` is at most `WINDOWS`, the index of the last window.
            unsafe { self.windows.get_unchecked(at) }
        }
    }

    /// The timestamp at which the counter is `ticks`; [invalid](Timestamp::INVALID) outside of the windows.
    #[cfg(test)]
    fn at(&self, ticks: super::machine::Ticks) -> Timestamp {
        self.window(ticks.high).at(ticks.low)
    }
}

#[cfg(test)]
mod tests {
    use super::super::line::{rate_of, to_window_end};
    use super::super::machine::Ticks;
    use super::*;

    fn halves(tsc: u64) -> Ticks {
        Ticks { low: tsc & u64::from(u32::MAX), high: tsc >> HALF }
    }

    /// Up to the bend, or the end of its windows, a segment agrees with its line to a nanosecond; after that it is invalid.
    #[test]
    fn a_segment_is_the_first_part_of_its_line() {
        for ticks_per_second in [1_001_000_000, 2_445_430_017, 100_000_000_000] {
            let rate = rate_of(ticks_per_second).expect("plausible");
            for base_tsc in [0, 1 << 40, (1 << 40) - 1, (1 << 40) + 1, (7 << 32) - 1000, (u64::MAX << 33) - 5] {
                for bend in [0, 1000, 1 << 32, ticks_per_second.cast_signed()]
                    .map(|bend| to_window_end(base_tsc, bend))
                    .into_iter()
                    .chain([i64::MAX])
                {
                    for bent_rate in [rate, rate + rate / 2000, rate - rate / 2000] {
                        let line = Line { base_tsc, base_ns: 1 << 60, bent_rate, bend, rate };
                        let segment = Segment::of(&line);
                        let first = base_tsc >> HALF << HALF;
                        let bend = u128::from(base_tsc) + u128::from(bend.cast_unsigned());
                        let end = (u128::from(first) + ((WINDOWS as u128) << HALF)).min(bend).min(1 << 64);
                        for tsc in [first, base_tsc, (end - 1) as u64]
                            .into_iter()
                            .chain((0..6).map(|at| base_tsc.wrapping_add(at << 31)))
                        {
                            let inside = tsc >= first && u128::from(tsc) < end;
                            let timestamp = segment.at(halves(tsc));
                            assert_eq!(timestamp != Timestamp::INVALID, inside, "{line:?} {tsc}");
                            assert!(
                                !inside || (0..=1).contains(&(line.at(tsc) - timestamp.time())),
                                "{line:?} {tsc}: {timestamp:?}"
                            );
                        }
                        for tsc in [end as u64, first.wrapping_sub(1)] {
                            assert_eq!(segment.at(halves(tsc)), Timestamp::INVALID, "{line:?} {tsc}");
                        }
                    }
                }
            }
        }
        let slow = Line::straight(0, 0, rate_of(1_000_000_000).expect("plausible"));
        let timestamp = Segment::of(&slow).at(halves(1));
        assert_eq!(timestamp, Timestamp::INVALID, "a tick of a nanosecond has no place in the fraction");
        assert_eq!(Segment::NONE.at(halves(0)), Timestamp::INVALID);
        assert_eq!(Segment::NONE.at(halves(u64::MAX)), Timestamp::INVALID);
    }

    /// From tick to tick, also across the end of a window.
    #[test]
    fn a_segment_never_goes_back() {
        for ticks_per_second in [1_001_000_000, 2_445_430_017, 6_000_000_000] {
            let rate = rate_of(ticks_per_second).expect("plausible");
            for base_tsc in [(9 << HALF) - 50_000, (9 << HALF) - 49_999] {
                let segment = Segment::of(&Line::straight(base_tsc, 12_345_678_901, rate));
                let mut before = 0;
                for tsc in base_tsc..base_tsc + 100_000 {
                    let time = segment.at(halves(tsc)).time();
                    assert!((before..=before + 2).contains(&time) || before == 0, "{before} {time}");
                    before = time;
                }
            }
        }
    }
}
