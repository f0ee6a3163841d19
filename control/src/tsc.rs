//! Whether the time stamp counter can be the clock, and how fast it ticks.
//!
//! Linux knows the first: it watches the counters of all processors, and uses them for its own clock only while they agree. The
//! second takes time to measure, the more the better it is to be known: it is measured by the first process after boot for 10 ms,
//! and kept in the file `tsc` of the run directory with the moment at which that began. Whoever comes later starts from there, and
//! has a longer baseline.

use crate::boot_file::{BootFile, Locked};
use crate::rundir::RunDir;
use std::io;
use std::time::Duration;
use tracepoint_core::clock::{self, Calibration, TscRefused};

const FILE: BootFile<4> = BootFile { name: "tsc", numbers: ["base_tsc", "base_ns", "ticks_per_second", "baseline_ns"] };

/// Where the kernel says which clock it uses itself.
const CLOCK_SOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
/// How long the first process measures.
const FIRST_MEASUREMENT: Duration = Duration::from_millis(10);
/// The file is written anew when the baseline is so many times as long.
const LONGER: u64 = 2;

/// Trusts the counter, if the kernel does. Otherwise the clock is `clock_gettime`, and the core keeps the reason.
pub(crate) fn trust() {
    if let Err(reason) = kernel_trusts_it() {
        return clock::distrust_tsc(reason);
    }
    // Why not, the core keeps.
    let _ = calibration().and_then(clock::trust_tsc);
}

/// Looks after a clock that is made from the counter: the kernel may have come to distrust it, and the baseline has become longer.
pub(crate) fn look_after() {
    if clock::name() != "tsc" {
        return;
    }
    if let Err(reason) = kernel_trusts_it() {
        return clock::distrust_tsc(reason);
    }
    // Somebody else has the file, or there is none: then it is not made better now.
    let Ok(run_dir) = RunDir::find() else { return };
    if let Ok(locked) = FILE.try_lock(&run_dir) {
        let _ = shared_calibration(&locked);
    }
}

fn kernel_trusts_it() -> Result<(), String> {
    match std::fs::read_to_string(CLOCK_SOURCE) {
        Ok(name) if name.trim_end() == "tsc" => Ok(()),
        Ok(name) => Err(format!("the kernel's own clock is {}", name.trim_end())),
        Err(error) => Err(format!("the kernel does not tell its own clock: {CLOCK_SOURCE}: {error}")),
    }
}

/// The calibration of this boot; without a run directory that can be used, one of this process alone.
fn calibration() -> Result<Calibration, TscRefused> {
    let shared = |run_dir: &RunDir| -> io::Result<_> { Ok(shared_calibration(&FILE.lock(run_dir)?)) };
    match RunDir::find().map(|run_dir| shared(&run_dir)) {
        Ok(Ok(shared)) => shared,
        _ => Calibration::measure(FIRST_MEASUREMENT),
    }
}

/// The calibration in the file, as good as it is by now; if there is none, or it is wrong, a new one.
fn shared_calibration(locked: &Locked<'_, 4>) -> Result<Calibration, TscRefused> {
    let known = locked.read().and_then(from_numbers);
    let (calibration, news) = match known.and_then(|known| Some((known, known.prolonged()?))) {
        Some((known, longer)) if longer.baseline_ns / LONGER < known.baseline_ns => (known, false),
        Some((_, longer)) => (longer, true),
        None => (Calibration::measure(FIRST_MEASUREMENT)?, true),
    };
    if news {
        // A file that cannot be written leaves everybody with a measurement of their own.
        let _ = locked.write(to_numbers(calibration));
    }
    Ok(calibration)
}

fn from_numbers(numbers: [i128; 4]) -> Option<Calibration> {
    let [base_tsc, base_ns, ticks_per_second, baseline_ns] = numbers.map(|number| u64::try_from(number).ok());
    Some(Calibration {
        base_tsc: base_tsc?,
        base_ns: base_ns?,
        ticks_per_second: ticks_per_second?,
        baseline_ns: baseline_ns?,
    })
}

fn to_numbers(calibration: Calibration) -> [i128; 4] {
    let Calibration { base_tsc, base_ns, ticks_per_second, baseline_ns } = calibration;
    [base_tsc, base_ns, ticks_per_second, baseline_ns].map(i128::from)
}

#[cfg(test)]
#[path = "../../tests/support/skip.rs"]
mod skip;

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether this machine has a counter whose measurement can be shared.
    fn measurable() -> bool {
        let refused = Calibration::measure(Duration::ZERO).err();
        if let Some(reason) = &refused {
            let missing = format!("the time stamp counter cannot be trusted: {reason}");
            skip::skip(&missing, "Run on a machine whose counter is invariant");
        }
        refused.is_none()
    }

    #[test]
    fn the_first_measurement_is_shared_and_made_better() -> Result<(), Box<dyn std::error::Error>> {
        if !measurable() {
            return Ok(());
        }
        let temp = tempfile::tempdir()?;
        let dir = RunDir::at(&temp.path().join("run"))?;
        let first = shared_calibration(&FILE.lock(&dir)?)?;
        assert!(first.baseline_ns >= 10_000_000);
        // At once it is the same; later it began at the same moment, and took longer.
        let mut last = first;
        while last == first {
            last = shared_calibration(&FILE.lock(&dir)?)?;
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!((last.base_tsc, last.base_ns), (first.base_tsc, first.base_ns));
        assert!(last.baseline_ns >= LONGER * first.baseline_ns);
        assert_eq!(FILE.lock(&dir)?.read().and_then(from_numbers), Some(last));
        Ok(())
    }

    #[test]
    fn what_cannot_be_is_measured_again() -> Result<(), Box<dyn std::error::Error>> {
        if !measurable() {
            return Ok(());
        }
        let temp = tempfile::tempdir()?;
        let dir = RunDir::at(&temp.path().join("run"))?;
        let locked = FILE.lock(&dir)?;
        let good = shared_calibration(&locked)?;
        let wrong = [
            [0; 4],
            [-1, 5, 2_000_000_000, 10_000_000],
            to_numbers(Calibration { base_ns: good.base_ns / 2, ..good }),
            to_numbers(Calibration { base_tsc: u64::MAX, ..good }),
            to_numbers(Calibration { ticks_per_second: good.ticks_per_second + good.ticks_per_second / 100, ..good }),
        ];
        for numbers in wrong {
            std::thread::sleep(Duration::from_millis(5));
            locked.write(numbers)?;
            let again = shared_calibration(&locked)?;
            assert!(again.base_tsc > good.base_tsc, "{numbers:?}");
            let off = again.ticks_per_second.abs_diff(good.ticks_per_second);
            assert!(off < good.ticks_per_second / 100, "{numbers:?}: {again:?}");
            assert_eq!(locked.read(), Some(to_numbers(again)));
        }
        Ok(())
    }
}
