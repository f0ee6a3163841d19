//! From ticks to nanoseconds: a straight line with one bend.
//!
//! ```text
//!  ns                         · rate
//!                         ·
//!                     ●  base_tsc + bend: on the clock
//!                  ·
//!               ·   bent rate
//!            ●  base_tsc, base_ns: where the line before it ended
//!                                                      ticks
//! ```
//!
//! Before the bend the conversion is one multiplication; the line is normally replaced before it bends. The bend ends a correction by
//! itself: a line that is not replaced for hours goes on at the rate of the clock, not at the rate that was needed to catch up with it.

use crate::hint::{opaque, opaque_ref, unlikely};

/// Half of the counter's bits.
const HALF: u32 = 32;
/// The last tick of the first window.
const WINDOW: u64 = (1 << HALF) - 1;

/// The shift of the time in a record's header word, above the 16 bits of the event id.
pub(crate) const TIME_SHIFT: u32 = u16::BITS;

/// The number of fractional bits of a rate.
pub(super) const SHIFT: u32 = 48;

/// The frequencies of counters for which a line can be made, in ticks per second.
pub(super) const TICKS_PER_SECOND: std::ops::RangeInclusive<u64> = 1_000_000..=100_000_000_000;

const NS_PER_SECOND: i128 = 1_000_000_000;

/// The conversion from ticks to nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Line {
    /// Where it begins, in ticks…
    pub(super) base_tsc: u64,
    /// …and in ns.
    pub(super) base_ns: u64,
    /// Nanoseconds per tick up to the bend, in units of 2⁻⁴⁸ ([`SHIFT`]). Below 2⁵⁹.
    pub(super) bent_rate: i64,
    /// The number of ticks from the base to the bend.
    pub(super) bend: i64,
    /// Nanoseconds per tick after the bend. Below 2⁵⁸, the rate of the slowest counter.
    pub(super) rate: i64,
}

impl Line {
    /// A line without a bend.
    pub(super) const fn straight(base_tsc: u64, base_ns: u64, rate: i64) -> Self {
        Self { base_tsc, base_ns, bent_rate: rate, bend: i64::MAX, rate }
    }

    /// The time at which the counter is `tsc`, rounded down; correct within 2⁶³ ticks of the base.
    ///
    /// This includes ticks before the base: a processor whose counter is slightly behind, or that has read it before the line, gets a
    /// time slightly before the base's. The products are below 2⁶³ · 2⁵⁹, so no sum overflows.
    #[inline(always)]
    pub(super) fn at(&self, tsc: u64) -> u64 {
        let Self { base_tsc, base_ns, bent_rate, bend, rate } = *self;
        let ticks = tsc.wrapping_sub(base_tsc).cast_signed();
        let bent = ticks.min(bend);
        let passed = i128::from(bent) * i128::from(bent_rate) + i128::from(ticks - bent) * i128::from(rate);
        base_ns.wrapping_add_signed((passed >> SHIFT) as i64)
    }
}

/// The counter's value in two halves, as the instruction returns it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ticks {
    /// Below 2³².
    pub(super) low: u64,
    /// Below 2³².
    pub(super) high: u64,
}

/// A point in time, as a base and an offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timestamp {
    pub(crate) base: TimestampBase,
    pub(crate) offset: u64,
}

/// The base of timestamps, in the two forms in which a record needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TimestampBase {
    /// In ns.
    pub(crate) time: u64,
    /// As in a record's header word, with the event id 0.
    pub(crate) word: u64,
}

impl TimestampBase {
    const fn at(time: u64) -> Self {
        Self { time, word: time << TIME_SHIFT }
    }
}

impl Timestamp {
    /// No time: before every record whose time comes from the counter.
    pub const INVALID: Self = Self::at(0);

    /// The timestamp at `time`, in ns.
    #[inline(always)]
    pub const fn at(time: u64) -> Self {
        Self { base: TimestampBase::at(time), offset: 0 }
    }

    /// In ns.
    #[inline(always)]
    pub const fn time(self) -> u64 {
        self.base.time.wrapping_add(self.offset)
    }
}

/// The number of windows of a segment: the longest pause between two lines takes three with the fastest counter.
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
/// is rounded down. So the time is up to 1 ns behind the line's; it is still monotonic.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(super) struct Segment {
    /// The upper half of the counter in the first window.
    first: u64,
    /// The window after the last valid one, and all that follow, are invalid; there is at least one.
    windows: [TickWindow; WINDOWS + 1],
}

/// All that a timestamp in the window is computed from, so that one register is enough to address it.
#[derive(Clone, Copy, Debug)]
pub(super) struct TickWindow {
    /// Nanoseconds per tick, in units of 2⁻⁶⁴.
    rate: u64,
    /// The timestamp at which the lower half is 0.
    base: TimestampBase,
}

impl TickWindow {
    /// All timestamps in it are [invalid](Timestamp::INVALID).
    pub(super) const INVALID: Self = Self { rate: 0, base: Timestamp::INVALID.base };

    /// The timestamp at which the lower half of the counter is `low`.
    #[inline(always)]
    pub(super) fn at(&self, low: u64) -> Timestamp {
        let Self { rate, base } = *opaque_ref(self);
        let offset = ((u128::from(low) * u128::from(rate)) >> 64) as u64;
        Timestamp { base, offset }
    }
}

impl Segment {
    /// A segment without valid windows.
    pub(super) const NONE: Self = Self { first: u64::MAX, windows: [TickWindow::INVALID; WINDOWS + 1] };

    /// The windows of a line up to its bend, as far as the counter does not overflow in them; the first one also covers ticks before the
    /// base. None if a tick is a nanosecond or longer.
    pub(super) fn of(line: &Line) -> Self {
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

    /// The window for the upper half of the counter; [invalid](TickWindow::INVALID) outside the segment.
    #[inline(always)]
    pub(super) fn window(&self, high: u64) -> &TickWindow {
        if high == self.first {
            &self.windows[0]
        } else {
            unlikely();
            let mut at = high.wrapping_sub(self.first) as usize;
            if at > WINDOWS {
                // A branch needs no register; `min` would.
                at = opaque(WINDOWS);
            }
            // SAFETY: `at` is at most `WINDOWS`, the index of the last window.
            unsafe { self.windows.get_unchecked(at) }
        }
    }

    /// The timestamp at which the counter is `ticks`; [invalid](Timestamp::INVALID) outside the windows.
    #[cfg(test)]
    fn at(&self, ticks: Ticks) -> Timestamp {
        self.window(ticks.high).at(ticks.low)
    }
}

/// The number of ticks from `begin` to the end of the window that contains `begin + ticks`.
pub(super) fn to_window_end(begin: u64, ticks: i64) -> i64 {
    let low = begin.wrapping_add_signed(ticks) & WINDOW;
    ticks.saturating_add_unsigned(WINDOW + 1 - low)
}

/// The rate of a counter with this frequency; `None` if that is not plausible.
pub(super) fn rate_of(ticks_per_second: u64) -> Option<i64> {
    TICKS_PER_SECOND.contains(&ticks_per_second).then(|| rate_between(i128::from(ticks_per_second), NS_PER_SECOND))?
}

/// The rate of a counter that makes `ticks` ticks in `ns` nanoseconds; `None` if that is not plausible.
pub(super) fn rate_between(ticks: i128, ns: i128) -> Option<i64> {
    if ticks <= 0 || ns <= 0 {
        return None;
    }
    let slowest = (NS_PER_SECOND << SHIFT) / i128::from(*TICKS_PER_SECOND.start());
    let rate = i64::try_from((ns << SHIFT) / ticks).ok()?;
    (rate > 0 && i128::from(rate) <= slowest).then_some(rate)
}

/// The number of ticks in `ns` nanoseconds at `rate`.
pub(super) fn ticks(ns: u64, rate: i64) -> i64 {
    i64::try_from((i128::from(ns) << SHIFT) / i128::from(rate)).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same result by unsigned products, rounded down explicitly.
    fn expected(line: &Line, tsc: u64) -> u64 {
        let forward = tsc.wrapping_sub(line.base_tsc);
        let backward = line.base_tsc.wrapping_sub(tsc);
        let product = |ticks: u64, rate: u64| u128::from(ticks) * u128::from(rate);
        let correction = line.bent_rate - line.rate;
        let (rate, more) = (line.rate.unsigned_abs(), correction.unsigned_abs());
        if forward < 1 << 63 {
            let bent = product(forward.min(line.bend.unsigned_abs()), more);
            let straight = product(forward, rate);
            let sum = if correction < 0 { straight - bent } else { straight + bent };
            line.base_ns + (sum >> SHIFT) as u64
        } else {
            let bent = product(backward, more);
            let straight = product(backward, rate);
            let sum = if correction < 0 { straight - bent } else { straight + bent };
            line.base_ns - sum.div_ceil(1 << SHIFT) as u64
        }
    }

    #[test]
    fn agrees_with_wide_arithmetic_at_the_extremes() {
        let year = 365 * 24 * 3600;
        for ticks_per_second in [1_000_000, 24_000_000, 1_000_000_000, 2_445_430_017, 5_999_999_999, 100_000_000_000] {
            let rate = rate_of(ticks_per_second).expect("plausible");
            for base_tsc in [0, 1, 1 << 40, (1 << 63) - 1, 1 << 63, u64::MAX - 5] {
                for base_ns in [1 << 40, 30 * year * 1_000_000_000, 1 << 62] {
                    for correction in [0, 1, -1, rate / 2000, -rate / 2000] {
                        let (bent_rate, bend) = (rate + correction, ticks_per_second.cast_signed());
                        let line = Line { base_tsc, base_ns, bent_rate, bend, rate };
                        let far = ticks_per_second.saturating_mul(20 * year).min((1 << 63) - 1);
                        for ticks in [0, 1, 2, ticks_per_second - 1, ticks_per_second, ticks_per_second + 1, far] {
                            let tsc = base_tsc.wrapping_add(ticks);
                            assert_eq!(line.at(tsc), expected(&line, tsc), "{line:?} {ticks}");
                        }
                        for ticks in [1, 2, 1000] {
                            let tsc = base_tsc.wrapping_sub(ticks);
                            assert_eq!(line.at(tsc), expected(&line, tsc), "{line:?} -{ticks}");
                        }
                    }
                }
            }
        }
    }

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

    #[test]
    fn is_exact_after_years() {
        // 2.4 GHz, ten years: the rounding of the rate is below a microsecond a day, and what one year adds shows it.
        let line = Line::straight(0, 0, rate_of(2_400_000_000).expect("plausible"));
        let seconds = 10 * 365 * 24 * 3600_u64;
        let error = (seconds * 1_000_000_000).abs_diff(line.at(seconds * 2_400_000_000));
        assert!(error < 3_000_000, "{error} ns in ten years");
        // A counter of one tick per nanosecond is not rounded at all.
        assert_eq!(
            Line::straight(7, 9, rate_of(1_000_000_000).expect("plausible")).at(u64::MAX >> 1),
            (u64::MAX >> 1) + 2
        );
    }

    #[test]
    fn the_correction_is_constant_after_the_bend() {
        let rate = rate_of(2_000_000_000).expect("plausible");
        let line = Line { base_tsc: 0, base_ns: 0, bent_rate: rate + rate / 1000, bend: 2_000_000, rate };
        assert_eq!(line.at(2_000_000), 1_000_999);
        assert_eq!(line.at(4_000_000), 2_000_999);
    }

    #[test]
    fn implausible_rates_are_none() {
        for ticks_per_second in [0, 1, 999_999, 100_000_000_001, u64::MAX] {
            assert_eq!(rate_of(ticks_per_second), None);
        }
        assert_eq!(rate_between(0, 5), None);
        assert_eq!(rate_between(-5, 5), None);
        assert_eq!(rate_between(5, 0), None);
        assert_eq!(rate_between(1, i128::from(u64::MAX)), None);
    }
}
