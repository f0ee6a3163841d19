//! The frequency of the time stamp counter: measured once, and refined by longer measurements.

use super::line::{TICKS_PER_SECOND, rate_of};
use super::machine;
use super::sample::compare_clocks;
use std::fmt;
use std::time::Duration;

/// The frequency of the time stamp counter, and the time of its measurement. Plain numbers, which processes can share through a file; valid until
/// the next boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Calibration {
    /// The counter when the measurement began, in ticks.
    pub base_tsc: u64,
    /// `CLOCK_MONOTONIC` at the same instant, in ns.
    pub base_ns: u64,
    /// The counter's ticks per second.
    pub ticks_per_second: u64,
    /// The duration of the measurement, in ns.
    pub baseline_ns: u64,
}

/// The reciprocal of the tolerated drift between counter and clock: 500 ppm, the kernel's own limit.
const DRIFT: u64 = 2000;
/// The tolerated error of a reading, in ns.
const SLACK: u64 = 10_000;
/// The shortest useful measurement.
const SHORTEST: Duration = Duration::from_millis(1);

impl Calibration {
    /// Measures for `duration`, at least 1 ms, and sleeps meanwhile. 10 ms give an accuracy of a few ppm.
    ///
    /// # Errors
    ///
    /// If there is no counter with a constant frequency, if the process may not read it, or if its frequency is not plausible.
    pub fn measure(duration: Duration) -> Result<Self, TscRefused> {
        machine::usable().map_err(TscRefused)?;
        let begin = compare_clocks();
        std::thread::sleep(duration.max(SHORTEST));
        let end = compare_clocks();
        Self::between((begin.tsc, begin.ns), (end.tsc, end.ns)).ok_or(TscRefused(IMPLAUSIBLE))
    }

    /// The same measurement, extended to now. `None` if the counter and the clock do not agree with this calibration (it is from another
    /// boot, or wrong, or the machine was suspended), or if there is no counter.
    pub fn prolonged(&self) -> Option<Self> {
        machine::usable().ok()?;
        let now = compare_clocks();
        self.prolonged_to(now.tsc, now.ns)
    }

    fn prolonged_to(&self, tsc: u64, ns: u64) -> Option<Self> {
        let passed = ns.checked_sub(self.base_ns)?;
        let ticks = u128::from(tsc.checked_sub(self.base_tsc)?);
        rate_of(self.ticks_per_second)?;
        let expected = ticks * 1_000_000_000 / u128::from(self.ticks_per_second);
        let tolerance = passed / DRIFT + SLACK;
        let agrees = expected.abs_diff(u128::from(passed)) <= u128::from(tolerance);
        let longer = agrees.then(|| Self::between((self.base_tsc, self.base_ns), (tsc, ns)))?;
        // A shorter baseline than before means that the calibration ends in the future, or that its file is corrupt.
        longer.filter(|longer| longer.baseline_ns >= self.baseline_ns)
    }

    /// The calibration between two readings of both clocks, (ticks, ns) each.
    fn between(begin: (u64, u64), end: (u64, u64)) -> Option<Self> {
        let ticks = u128::from(end.0.checked_sub(begin.0)?);
        let baseline_ns = end.1.checked_sub(begin.1).filter(|ns| *ns > 0)?;
        let ticks_per_second = u64::try_from(ticks * 1_000_000_000 / u128::from(baseline_ns)).ok()?;
        let plausible = TICKS_PER_SECOND.contains(&ticks_per_second);
        plausible.then_some(Self { base_tsc: begin.0, base_ns: begin.1, ticks_per_second, baseline_ns })
    }

    /// The rate of a line.
    pub(super) fn rate(&self) -> Result<i64, TscRefused> {
        rate_of(self.ticks_per_second).ok_or(TscRefused(IMPLAUSIBLE))
    }
}

const IMPLAUSIBLE: &str = concat!("the frequency of the ", machine::counter_name!(), " is not plausible");

/// The reason why the time stamp counter cannot be used; the clock is then `clock_gettime`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TscRefused(pub(super) &'static str);

impl fmt::Display for TscRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for TscRefused {}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: Calibration =
        Calibration { base_tsc: 1 << 40, base_ns: 5_000, ticks_per_second: 2_500_000_000, baseline_ns: 10_000_000 };

    #[test]
    fn a_longer_baseline_measures_better() {
        // An hour later; the counter is 2 ppm faster than measured over 10 ms.
        let hour = 3_600_000_000_000;
        let longer = KNOWN.prolonged_to((1 << 40) + 9_000_018_000_000, 5_000 + hour).expect("agrees");
        assert_eq!(longer, Calibration { ticks_per_second: 2_500_005_000, baseline_ns: hour, ..KNOWN });
    }

    #[test]
    fn a_calibration_that_disagrees_is_not_prolonged() {
        let second = 1_000_000_000;
        assert!(KNOWN.prolonged_to((1 << 40) + 2_500_000_000, 5_000 + second).is_some());
        let wrong = [
            (KNOWN, (1 << 40) + 2_503_000_000, 5_000 + second),
            (KNOWN, (1 << 40) - 1, 5_000 + second),
            (KNOWN, (1 << 40) + 2_500_000_000, 4_999),
            (KNOWN, (1 << 40) + 2_500_000_000, 5_000 + 60 * second),
            (Calibration { ticks_per_second: 0, ..KNOWN }, 1 << 40, 5_000),
            (Calibration { ticks_per_second: u64::MAX, ..KNOWN }, u64::MAX, 5_000 + second),
            (Calibration { baseline_ns: 1 << 60, ..KNOWN }, (1 << 40) + 2_500_000_000, 5_000 + second),
        ];
        for (calibration, tsc, ns) in wrong {
            assert_eq!(calibration.prolonged_to(tsc, ns), None, "{calibration:?} {tsc} {ns}");
        }
    }
}
