//! Decides whether the time stamp counter (TSC) can be the clock, and calibrates it.
//!
//! Linux checks that the counters of all processors agree, and uses the TSC as its clock source only while they do; this module follows
//! it. The precision of the tick rate grows with the time of measurement. The first process after boot measures for 10 ms, and stores the
//! result with the start of the measurement in the file `tsc` of the run directory. Later processes extend the measurement from that
//! start, which gives a longer baseline.

use crate::boot_file::{BootFile, Locked};
use crate::rundir::RunDir;
use std::io;
use std::time::Duration;
use tracepoint_core::clock::{self, Calibration, TscRefused};

const FILE: BootFile<4> = BootFile { name: "tsc", numbers: ["base_tsc", "base_ns", "ticks_per_second", "baseline_ns"] };

/// The file with the name of the kernel's current clock source.
const CLOCK_SOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
/// Duration of the first measurement.
const FIRST_MEASUREMENT: Duration = Duration::from_millis(10);
/// Factor by which the baseline must grow before the file is written again.
const LONGER: u64 = 2;

/// Uses the counter if the kernel does. Otherwise the clock is `clock_gettime`, and the core records the reason.
pub(crate) fn trust() {
    if let Err(reason) = kernel_trusts_it() {
        return clock::distrust_tsc(reason);
    }
    // On an error the core records the reason.
    let _ = calibration().and_then(clock::trust_tsc);
}

/// Checks a clock that uses the counter: the kernel may have stopped using it. Extends the stored baseline.
pub(crate) fn check_source() {
    if clock::name() != "tsc" {
        return;
    }
    if let Err(reason) = kernel_trusts_it() {
        return clock::distrust_tsc(reason);
    }
    // If another process holds the lock, or there is no file, a later check extends it.
    let Ok(run_dir) = RunDir::find() else { return };
    if let Ok(locked) = FILE.try_lock(&run_dir) {
        let _ = shared_calibration(&locked);
    }
}

fn kernel_trusts_it() -> Result<(), String> {
    match std::fs::read_to_string(CLOCK_SOURCE) {
        Ok(name) if name.trim_end() == "tsc" => Ok(()),
        Ok(name) => Err(format!("the kernel's own clock is {}", name.trim_end())),
        Err(error) => Err(format!("cannot read the kernel's clock source: {CLOCK_SOURCE}: {error}")),
    }
}

/// The calibration of this boot; if the run directory cannot be used, one of this process alone.
fn calibration() -> Result<Calibration, TscRefused> {
    let shared = |run_dir: &RunDir| -> io::Result<_> { Ok(shared_calibration(&FILE.lock(run_dir)?)) };
    match RunDir::find().map(|run_dir| shared(&run_dir)) {
        Ok(Ok(shared)) => shared,
        _ => Calibration::measure(FIRST_MEASUREMENT),
    }
}

/// The stored calibration, extended to now if that doubles its baseline; a new one if there is none or it is wrong.
fn shared_calibration(locked: &Locked<'_, 4>) -> Result<Calibration, TscRefused> {
    let known = locked.read().and_then(from_numbers);
    let (calibration, is_new) = match known.and_then(|known| Some((known, known.prolonged()?))) {
        Some((known, longer)) if longer.baseline_ns / LONGER < known.baseline_ns => (known, false),
        Some((_, longer)) => (longer, true),
        None => (Calibration::measure(FIRST_MEASUREMENT)?, true),
    };
    if is_new {
        // If the file cannot be written, each process measures for itself.
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

    /// Whether this machine has an invariant time stamp counter.
    fn measurable() -> bool {
        let refused = Calibration::measure(Duration::ZERO).err();
        if let Some(reason) = &refused {
            let missing = format!("the time stamp counter cannot be trusted: {reason}");
            skip::skip(&missing, "Run on a machine whose counter is invariant");
        }
        refused.is_none()
    }

    #[test]
    fn the_first_measurement_is_shared_and_extended() -> Result<(), Box<dyn std::error::Error>> {
        if !measurable() {
            return Ok(());
        }
        let temp = tempfile::tempdir()?;
        let dir = RunDir::at(&temp.path().join("run"))?;
        let first = shared_calibration(&FILE.lock(&dir)?)?;
        assert!(first.baseline_ns >= 10_000_000);
        // The calibration stays the same at first; later it has the same start and a longer baseline.
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
    fn a_wrong_calibration_is_replaced() -> Result<(), Box<dyn std::error::Error>> {
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
