//! Decides whether the processor's counter (the TSC of x86-64, the system counter of aarch64) can be the clock, and calibrates it.
//!
//! Linux checks that the counters of all processors agree, and uses the counter as its clock source only while they do; this module follows the
//! kernel's decision. The precision of the tick rate increases with the duration of the measurement. The first process after boot measures
//! for 10 ms, and stores the result with the start of the measurement in the file `tsc` of the run directory. Later processes extend the
//! measurement from that start, which gives a longer baseline. Times in the file are those of the initial time namespace.

use crate::boot_file::{BootFile, BootFileLock};
use crate::rundir::RunDir;
use std::io;
use std::time::Duration;
use tracepoint_reader::time_namespace::TimeNamespace;
use tracepoint_ring::clock::{self, Calibration, TscRefused};

const FILE: BootFile<4> = BootFile { name: "tsc", numbers: ["base_tsc", "base_ns", "ticks_per_second", "baseline_ns"] };

/// The file with the name of the kernel's current clock source.
const CLOCK_SOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
/// Duration of the first measurement.
const FIRST_MEASUREMENT: Duration = Duration::from_millis(10);
/// Factor by which the baseline must grow before the file is written again.
const LONGER: u64 = 2;

/// Uses the counter if the kernel does. Otherwise the clock is `clock_gettime`, and the core records the reason.
pub(crate) fn trust() {
    match kernel_trusts_it() {
        Err(SourceError::Unreadable(_)) if clock::name() == clock::COUNTER => return,
        Err(SourceError::Unreadable(reason) | SourceError::Other(reason)) => return clock::distrust_tsc(reason),
        Ok(()) => {}
    }
    // On an error the core records the reason.
    let _ = calibration().and_then(clock::trust_tsc);
}

/// Checks a clock that uses the counter, because the kernel may have stopped using it. Extends the stored baseline.
pub fn check_source() {
    if clock::name() != clock::COUNTER {
        return;
    }
    match kernel_trusts_it() {
        Err(SourceError::Other(reason)) => return clock::distrust_tsc(reason),
        // Unreadable: the process has no access to `/sys` any more, for example because it has called `chroot`.
        Err(SourceError::Unreadable(_)) | Ok(()) => {}
    }
    // If another process holds the lock, or there is no file, a later check extends it.
    let (Ok(run_dir), Some(namespace)) = (RunDir::of_traced_process(), TimeNamespace::of_this_process()) else {
        return;
    };
    if let Ok(locked) = FILE.try_lock(&run_dir) {
        let _ = shared_calibration(&locked, namespace);
    }
}

/// The reason why the kernel is not known to use the counter.
enum SourceError {
    /// It uses another clock.
    Other(String),
    Unreadable(String),
}

fn kernel_trusts_it() -> Result<(), SourceError> {
    match fileguard::read_to_string(CLOCK_SOURCE) {
        Ok(name) if name.trim_end() == clock::COUNTER => Ok(()),
        Ok(name) => Err(SourceError::Other(format!("the kernel's own clock is {}", name.trim_end()))),
        Err(error) => {
            Err(SourceError::Unreadable(format!("cannot read the kernel's clock source: {CLOCK_SOURCE}: {error}")))
        }
    }
}

/// Returns the calibration of this boot. If the run directory cannot be used, or the time namespace is unknown, calibrates for this process
/// alone.
fn calibration() -> Result<Calibration, TscRefused> {
    let namespace = TimeNamespace::of_this_process();
    let shared = |run_dir: &RunDir| -> Option<io::Result<_>> {
        let namespace = namespace?;
        Some(FILE.lock(run_dir).map(|locked| shared_calibration(&locked, namespace)))
    };
    match RunDir::of_traced_process().map(|run_dir| shared(&run_dir)) {
        Ok(Some(Ok(shared))) => shared,
        _ => Calibration::measure(FIRST_MEASUREMENT),
    }
}

/// Returns the stored calibration, extended to now if that doubles its baseline; a new one if there is none or it is wrong.
fn shared_calibration(locked: &BootFileLock<'_, 4>, namespace: TimeNamespace) -> Result<Calibration, TscRefused> {
    let known = locked.read().and_then(|numbers| from_numbers(numbers, namespace));
    let (calibration, is_new) = match known.and_then(|known| Some((known, known.prolonged()?))) {
        Some((known, longer)) if longer.baseline_ns / LONGER < known.baseline_ns => (known, false),
        Some((_, longer)) => (longer, true),
        None => (Calibration::measure(FIRST_MEASUREMENT)?, true),
    };
    if is_new {
        // If the file cannot be written, each process measures for itself.
        let _ = locked.write(to_numbers(calibration, namespace));
    }
    Ok(calibration)
}

fn from_numbers(mut numbers: [i128; 4], namespace: TimeNamespace) -> Option<Calibration> {
    numbers[1] = numbers[1].checked_add(namespace.monotonic.into())?;
    let [base_tsc, base_ns, ticks_per_second, baseline_ns] = numbers.map(|number| u64::try_from(number).ok());
    Some(Calibration {
        base_tsc: base_tsc?,
        base_ns: base_ns?,
        ticks_per_second: ticks_per_second?,
        baseline_ns: baseline_ns?,
    })
}

fn to_numbers(calibration: Calibration, namespace: TimeNamespace) -> [i128; 4] {
    let Calibration { base_tsc, base_ns, ticks_per_second, baseline_ns } = calibration;
    let mut numbers = [base_tsc, base_ns, ticks_per_second, baseline_ns].map(i128::from);
    numbers[1] -= i128::from(namespace.monotonic);
    numbers
}

#[cfg(test)]
#[path = "../../tests/support/skip.rs"]
mod skip;

#[cfg(test)]
mod tests {
    use super::*;

    const INITIAL: fn() -> TimeNamespace = TimeNamespace::default;

    /// Returns whether this machine has an invariant time stamp counter.
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
        let first = shared_calibration(&FILE.lock(&dir)?, INITIAL())?;
        assert!(first.baseline_ns >= 10_000_000);
        // The calibration stays the same at first; later it has the same start and a longer baseline.
        let mut last = first;
        while last == first {
            last = shared_calibration(&FILE.lock(&dir)?, INITIAL())?;
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!((last.base_tsc, last.base_ns), (first.base_tsc, first.base_ns));
        assert!(last.baseline_ns >= LONGER * first.baseline_ns);
        assert_eq!(FILE.lock(&dir)?.read().and_then(|numbers| from_numbers(numbers, INITIAL())), Some(last));
        Ok(())
    }

    /// One file serves processes whose clocks differ by an hour, or by less than the tolerance.
    #[test]
    fn a_calibration_is_shared_between_time_namespaces() {
        let known =
            Calibration { base_tsc: 1 << 40, base_ns: 5_000_000_000, ticks_per_second: 2_500_000_000, baseline_ns: 9 };
        let mut ahead = TimeNamespace::default();
        for offset in [3_600_000_000_000, 1_000, -4_000_000_000] {
            ahead.monotonic = offset;
            let shifted = Calibration { base_ns: known.base_ns.saturating_add_signed(offset), ..known };
            assert_eq!(from_numbers(to_numbers(known, INITIAL()), ahead), Some(shifted));
            assert_eq!(from_numbers(to_numbers(shifted, ahead), INITIAL()), Some(known));
        }
        ahead.monotonic = -6_000_000_000;
        assert_eq!(from_numbers(to_numbers(known, INITIAL()), ahead), None, "before the beginning of its clock");
    }

    #[test]
    fn a_wrong_calibration_is_replaced() -> Result<(), Box<dyn std::error::Error>> {
        if !measurable() {
            return Ok(());
        }
        let temp = tempfile::tempdir()?;
        let dir = RunDir::at(&temp.path().join("run"))?;
        let locked = FILE.lock(&dir)?;
        let good = shared_calibration(&locked, INITIAL())?;
        let wrong = [
            [0; 4],
            [-1, 5, 2_000_000_000, 10_000_000],
            to_numbers(Calibration { base_ns: good.base_ns / 2, ..good }, INITIAL()),
            to_numbers(Calibration { base_tsc: u64::MAX, ..good }, INITIAL()),
            to_numbers(
                Calibration { ticks_per_second: good.ticks_per_second + good.ticks_per_second / 100, ..good },
                INITIAL(),
            ),
        ];
        for numbers in wrong {
            std::thread::sleep(Duration::from_millis(5));
            locked.write(numbers)?;
            let again = shared_calibration(&locked, INITIAL())?;
            assert!(again.base_tsc > good.base_tsc, "{numbers:?}");
            let off = again.ticks_per_second.abs_diff(good.ticks_per_second);
            assert!(off < good.ticks_per_second / 100, "{numbers:?}: {again:?}");
            assert_eq!(locked.read(), Some(to_numbers(again, INITIAL())));
        }
        Ok(())
    }
}
