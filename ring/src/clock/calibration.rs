//! How fast the time stamp counter ticks: measured once, and better the longer it is measured.

use super::line::{TICKS_PER_SECOND, rate_of};
use super::machine;
use super::reading::compare_clocks;
use std::fmt;
use std::time::Duration;

/// How fast the time stamp counter ticks, and from when it was measured. Plain numbers, to be kept in a file and shared by
/// processes; true until the machine boots again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Calibration {
    /// The counter when the measurement began, in ticks.
    pub base_tsc: u64,
    /// `CLOCK_MONOTONIC` at the same moment, in ns.
    pub base_ns: u64,
    /// The counter's ticks per second.
    pub ticks_per_second: u64,
    /// How long the measurement took, in ns.
    pub baseline_ns: u64,
}

/// The counter and the clock may drift apart by one part in so many (500 ppm: what the kernel allows itself)…
const DRIFT: u64 = 2000;
/// …after an error of the measurement, in ns.
const SLACK: u64 = 10_000;
/// The shortest measurement that says anything.
const SHORTEST: Duration = Duration::from_millis(1);

impl Calibration {
    /// Measures for `duration`, 1 ms at least; sleeps meanwhile. 10 ms are good for some millionths.
    ///
    /// # Errors
    ///
    /// If there is no counter that ticks evenly, or the process may not read it; or if it ticks at no plausible rate.
    pub fn measure(duration: Duration) -> Result<Self, TscRefused> {
        machine::usable().map_err(TscRefused)?;
        let begin = compare_clocks();
        std::thread::sleep(duration.max(SHORTEST));
        let end = compare_clocks();
        Self::between((begin.tsc, begin.ns), (end.tsc, end.ns)).ok_or(TscRefused(ODD))
    }

    /// The same measurement ended now, with its longer baseline. `None` if the counter and the clock are not where this
    /// calibration says: it is of another boot, or wrong, or the machine slept; or if there is no counter.
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
        // Shorter than what it was measured over: a baseline in the future, or a file that says so.
        longer.filter(|longer| longer.baseline_ns >= self.baseline_ns)
    }

    /// What two readings of both clocks, (ticks, ns), tell.
    fn between(begin: (u64, u64), end: (u64, u64)) -> Option<Self> {
        let ticks = u128::from(end.0.checked_sub(begin.0)?);
        let baseline_ns = end.1.checked_sub(begin.1).filter(|ns| *ns > 0)?;
        let ticks_per_second = u64::try_from(ticks * 1_000_000_000 / u128::from(baseline_ns)).ok()?;
        let plausible = TICKS_PER_SECOND.contains(&ticks_per_second);
        plausible.then_some(Self { base_tsc: begin.0, base_ns: begin.1, ticks_per_second, baseline_ns })
    }

    /// The rate of lines.
    pub(super) fn rate(&self) -> Result<i64, TscRefused> {
        rate_of(self.ticks_per_second).ok_or(TscRefused(ODD))
    }
}

const ODD: &str = "the time stamp counter ticks at no plausible rate";

/// The time stamp counter cannot be used. The clock is `clock_gettime` then.
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
        // An hour later; the counter is 2 ppm faster than 10 ms had told.
        let hour = 3_600_000_000_000;
        let longer = KNOWN.prolonged_to((1 << 40) + 9_000_018_000_000, 5_000 + hour).expect("agrees");
        assert_eq!(longer, Calibration { ticks_per_second: 2_500_005_000, baseline_ns: hour, ..KNOWN });
    }

    #[test]
    fn what_does_not_agree_is_not_prolonged() {
        let second = 1_000_000_000;
        assert!(KNOWN.prolonged_to((1 << 40) + 2_500_000_000, 5_000 + second).is_some());
        let doubtful = [
            (KNOWN, (1 << 40) + 2_503_000_000, 5_000 + second),
            (KNOWN, (1 << 40) - 1, 5_000 + second),
            (KNOWN, (1 << 40) + 2_500_000_000, 4_999),
            (KNOWN, (1 << 40) + 2_500_000_000, 5_000 + 60 * second),
            (Calibration { ticks_per_second: 0, ..KNOWN }, 1 << 40, 5_000),
            (Calibration { ticks_per_second: u64::MAX, ..KNOWN }, u64::MAX, 5_000 + second),
            (Calibration { baseline_ns: 1 << 60, ..KNOWN }, (1 << 40) + 2_500_000_000, 5_000 + second),
        ];
        for (calibration, tsc, ns) in doubtful {
            assert_eq!(calibration.prolonged_to(tsc, ns), None, "{calibration:?} {tsc} {ns}");
        }
    }
}
