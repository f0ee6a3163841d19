//! Converts ticks to nanoseconds: a straight line with one bend.
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
//! Before the bend the conversion is one multiplication; the line is normally replaced before it bends. The bend ends a correction
//! automatically: a line that is not replaced for hours continues at the rate of the clock, not at the rate that was needed to catch up with it.

/// Half of the counter's bits: the fast path divides a line into windows of 2³² ticks (see [`fast_clock`](super::fast_clock)).
pub(super) const HALF: u32 = 32;
/// The last tick of the first window.
const WINDOW: u64 = (1 << HALF) - 1;

/// The number of fractional bits of a rate.
pub(super) const SHIFT: u32 = 48;

/// The supported frequencies of counters in ticks per second.
pub(super) const TICKS_PER_SECOND: std::ops::RangeInclusive<u64> = 1_000_000..=100_000_000_000;

const NS_PER_SECOND: i128 = 1_000_000_000;

/// The conversion from ticks to nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Line {
    /// The beginning in ticks…
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

    /// The time at which the counter is `tsc`, rounded down. Correct within 2⁶³ ticks of the base.
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

/// The number of ticks from `begin` to the end of the window that contains `begin + ticks`.
pub(super) fn to_window_end(begin: u64, ticks: i64) -> i64 {
    let low = begin.wrapping_add_signed(ticks) & WINDOW;
    ticks.saturating_add_unsigned(WINDOW + 1 - low)
}

/// The rate of a counter with this frequency; `None` if it is not plausible.
pub(super) fn rate_of(ticks_per_second: u64) -> Option<i64> {
    TICKS_PER_SECOND.contains(&ticks_per_second).then(|| rate_between(i128::from(ticks_per_second), NS_PER_SECOND))?
}

/// The rate of a counter that makes `ticks` ticks in `ns` nanoseconds; `None` if it is not plausible.
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

    /// The same result with unsigned products, rounded down explicitly.
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

    #[test]
    fn is_exact_after_years() {
        // 2.4 GHz, ten years: the rounding of the rate is below a microsecond a day; the error of one year would reveal it.
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
