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
//! Who is on time (the next line is drawn before this one bends) has one product to work out. What was corrected ends by itself:
//! a line that nobody replaces for hours goes on at the rate of the clock, not at the one that was needed to catch up with it.

/// Binary places behind the point in rates.
pub(super) const SHIFT: u32 = 48;

/// The slowest and the fastest counter that a line can be made for, in ticks per second.
pub(super) const TICKS_PER_SECOND: std::ops::RangeInclusive<u64> = 1_000_000..=100_000_000_000;

const NS_PER_SECOND: i128 = 1_000_000_000;

/// A line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Line {
    /// Where it begins, in ticks…
    pub(super) base_tsc: u64,
    /// …and in ns.
    pub(super) base_ns: u64,
    /// Nanoseconds per tick up to the bend, in units of 2⁻⁴⁸ ([`SHIFT`]). Below 2⁵⁹.
    pub(super) bent_rate: i64,
    /// After how many ticks it is bent.
    pub(super) bend: i64,
    /// Nanoseconds per tick from there on. Below 2⁵⁸, the rate of the slowest counter.
    pub(super) rate: i64,
}

impl Line {
    /// A line without a bend.
    pub(super) const fn straight(base_tsc: u64, base_ns: u64, rate: i64) -> Self {
        Self { base_tsc, base_ns, bent_rate: rate, bend: i64::MAX, rate }
    }

    /// The time at which the counter stands at `tsc`, rounded down; right for 2⁶³ ticks around the base.
    ///
    /// Also before the base: a processor whose counter is a little behind, or that read it before it read the line, gets a time
    /// a little before the base's. The products are below 2⁶³ · 2⁵⁹, so that no sum overflows.
    #[inline(always)]
    pub(super) fn at(&self, tsc: u64) -> u64 {
        let Self { base_tsc, base_ns, bent_rate, bend, rate } = *self;
        let ticks = tsc.wrapping_sub(base_tsc).cast_signed();
        let bent = ticks.min(bend);
        let passed = i128::from(bent) * i128::from(bent_rate) + i128::from(ticks - bent) * i128::from(rate);
        base_ns.wrapping_add_signed((passed >> SHIFT) as i64)
    }
}

/// The part of a line from its base to its bend, in the form in which the least has to be worked out: a product, of which the upper half
/// is taken.
#[derive(Clone, Copy, Debug)]
pub(super) struct Segment {
    base_tsc: u64,
    /// How many ticks it is long.
    length: u64,
    /// Nanoseconds per tick, in units of 2⁻⁶⁴.
    rate: u64,
    /// The time at which the counter stood at 0, in the same units and modulo 2¹²⁸: it means something as a part of a sum alone.
    origin: u128,
}

impl Segment {
    /// One that no moment is in.
    pub(super) const NONE: Self = Self { base_tsc: 0, length: 0, rate: 0, origin: 0 };

    /// The first part of a line, as far as the counter does not run over in it; none if a tick is longer than a nanosecond.
    pub(super) fn of(line: &Line) -> Self {
        let Line { base_tsc, base_ns, bent_rate, bend, .. } = *line;
        if !(0..1 << SHIFT).contains(&bent_rate) || bend < 0 {
            return Self::NONE;
        }
        let rate = bent_rate.cast_unsigned() << (64 - SHIFT);
        let origin = (u128::from(base_ns) << 64).wrapping_sub(u128::from(base_tsc) * u128::from(rate));
        Self { base_tsc, length: bend.cast_unsigned().min(u64::MAX - base_tsc), rate, origin }
    }

    /// The time of the line at which the counter stands at `tsc`; `None` before the segment and behind it.
    #[inline(always)]
    pub(super) fn at(&self, tsc: u64) -> Option<u64> {
        // Of all ticks, not of those since the base, so that the product does not wait for a difference.
        let time = (u128::from(tsc) * u128::from(self.rate)).wrapping_add(self.origin) >> 64;
        (tsc.wrapping_sub(self.base_tsc) < self.length).then_some(time as u64)
    }
}

/// The rate of a counter; `None` if it is not a plausible one.
pub(super) fn rate_of(ticks_per_second: u64) -> Option<i64> {
    TICKS_PER_SECOND.contains(&ticks_per_second).then(|| rate_between(i128::from(ticks_per_second), NS_PER_SECOND))?
}

/// The rate at which `ns` nanoseconds pass in `ticks` ticks; `None` if no plausible counter has it.
pub(super) fn rate_between(ticks: i128, ns: i128) -> Option<i64> {
    if ticks <= 0 || ns <= 0 {
        return None;
    }
    let slowest = (NS_PER_SECOND << SHIFT) / i128::from(*TICKS_PER_SECOND.start());
    let rate = i64::try_from((ns << SHIFT) / ticks).ok()?;
    (rate > 0 && i128::from(rate) <= slowest).then_some(rate)
}

/// How many ticks `ns` nanoseconds have at `rate`.
pub(super) fn ticks(ns: u64, rate: i64) -> i64 {
    i64::try_from((i128::from(ns) << SHIFT) / i128::from(rate)).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same in another way: unsigned products, rounded down by hand.
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

    /// Up to the bend a segment tells what its line does, and nothing beside it.
    #[test]
    fn a_segment_is_the_first_part_of_its_line() {
        for ticks_per_second in [1_001_000_000, 2_445_430_017, 100_000_000_000] {
            let rate = rate_of(ticks_per_second).expect("plausible");
            for base_tsc in [0, 1 << 40, u64::MAX - 5] {
                for bend in [1, 1000, ticks_per_second.cast_signed(), i64::MAX] {
                    for bent_rate in [rate, rate + rate / 2000, rate - rate / 2000] {
                        let line = Line { base_tsc, base_ns: 1 << 60, bent_rate, bend, rate };
                        let segment = Segment::of(&line);
                        for ticks in [0, 1, 999, bend.cast_unsigned() / 2, bend.cast_unsigned() - 1] {
                            let tsc = base_tsc.wrapping_add(ticks);
                            let inside = ticks < bend.cast_unsigned() && tsc >= base_tsc && tsc < u64::MAX;
                            assert_eq!(segment.at(tsc), inside.then(|| line.at(tsc)), "{line:?} {ticks}");
                        }
                        for tsc in [base_tsc.wrapping_add(bend.cast_unsigned()), base_tsc.wrapping_sub(1)] {
                            assert_eq!(segment.at(tsc), None, "{line:?} {tsc}");
                        }
                    }
                }
            }
        }
        let slow = Line::straight(0, 0, rate_of(1_000_000_000).expect("plausible"));
        assert_eq!(Segment::of(&slow).at(1), None, "a tick of a nanosecond has no place in the fraction");
        assert_eq!(Segment::NONE.at(0), None);
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
    fn after_the_bend_the_correction_stays_what_it_was() {
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
