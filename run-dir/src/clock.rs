//! The offset of the trace clock from UTC.
//!
//! The times of events are those of `CLOCK_MONOTONIC`; viewers show the time of day, and use it to merge traces. Two measurements of the
//! offset between the two clocks never agree exactly: if each process measured it, events would be microseconds apart in a merged trace,
//! and effects could precede their causes. The offset is therefore measured once per boot, and stored in the file `clock` of the run
//! directory, as in the initial time namespace. In other time namespaces, `CLOCK_MONOTONIC` is shifted by a constant, which is subtracted
//! here. The offset does not change when the wall clock is set later, because agreement between the traces of one boot matters more.

use crate::boot_file::BootFile;
use crate::rundir::RunDir;
use crate::tsc;
use rustix::time::{ClockId, Timespec, clock_gettime};
use std::io;
use tracepoint_reader::time_namespace::TimeNamespace;
use tracepoint_ring::clock::{Clock, ClockInUse, select, selected};
use tracepoint_sinks::ClockInfo;

const FILE: BootFile<1> = BootFile { name: "clock", numbers: ["offset_ns"] };
/// Number of measurements; the best one is used.
const MEASUREMENTS: usize = 32;

/// Selects the session's clock, if it sets one, and prepares the selected clock.
pub fn choose(clock: Option<Clock>) -> Result<(), ClockInUse> {
    clock.map_or(Ok(()), select)?;
    if matches!(selected(), Clock::Monotonic) {
        tsc::trust();
    }
    Ok(())
}

/// Describes the clock with the offset shared by all processes that use `run_dir`. If the directory cannot be used, or the time namespace
/// of this process is unknown, returns an offset of this process alone, and the error.
pub fn clock_info(run_dir: &RunDir) -> (ClockInfo, io::Result<()>) {
    let Some(namespace) = TimeNamespace::of_this_process() else {
        let text =
            "the time namespace of the process is unknown (it has no `/proc`, or has called `unshare(CLONE_NEWTIME)`)";
        return (own_clock_info(), Err(io::Error::other(text)));
    };
    match shared_offset(run_dir, namespace) {
        Ok(offset) => (info(offset, Some(namespace)), Ok(())),
        Err(error) => (own_clock_info(), Err(error)),
    }
}

/// Describes the clock with an offset of this process alone.
pub fn own_clock_info() -> ClockInfo {
    info(measure(), TimeNamespace::of_this_process())
}

/// Equal identities mean equal clocks. A clock with an unknown offset has no identity.
fn info(offset: i64, namespace: Option<TimeNamespace>) -> ClockInfo {
    ClockInfo { uuid: namespace.and_then(TimeNamespace::clock), offset }
}

fn shared_offset(run_dir: &RunDir, TimeNamespace { monotonic, .. }: TimeNamespace) -> io::Result<i64> {
    let locked = FILE.lock(run_dir)?;
    if let Some(offset) = locked.read().and_then(|[offset]| i64::try_from(offset).ok()) {
        return Ok(offset.saturating_sub(monotonic));
    }
    let offset = measure();
    locked.write([i128::from(offset) + i128::from(monotonic)])?;
    Ok(offset)
}

/// Measures `CLOCK_REALTIME` - `CLOCK_MONOTONIC` in ns: reads the former between two readings of the latter, and uses the closest pair.
fn measure() -> i64 {
    let one = || {
        let before = ns(clock_gettime(ClockId::Monotonic));
        let real = ns(clock_gettime(ClockId::Realtime));
        let after = ns(clock_gettime(ClockId::Monotonic));
        (after - before, real - (before + (after - before) / 2))
    };
    let mut best = one();
    for _ in 1..MEASUREMENTS {
        best = best.min(one());
    }
    best.1
}

fn ns(time: Timespec) -> i64 {
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_measurement_is_kept() -> Result<(), Box<dyn std::error::Error>> {
        let temp = tempfile::tempdir()?;
        let dir = RunDir::at(&temp.path().join("run"))?;
        let threads: Vec<_> = (0..8)
            .map(|_| {
                let path = dir.path().to_owned();
                std::thread::spawn(move || RunDir::at(&path).map(|dir| clock_info(&dir).0.offset).ok())
            })
            .collect();
        let offsets: Vec<_> = threads.into_iter().map(|thread| thread.join().ok().flatten()).collect();
        assert!(offsets[0].is_some());
        assert!(offsets.iter().all(|offset| *offset == offsets[0]), "{offsets:?}");
        assert_eq!(std::fs::read_dir(dir.path())?.count(), 2, "the file and its lock");
        Ok(())
    }

    /// A process whose clock is ahead by a day and one whose clock is not convert the same moment to the same date, in any order.
    #[test]
    fn another_time_namespace_has_its_own_offset() -> Result<(), Box<dyn std::error::Error>> {
        const DAY: i64 = 86_400_000_000_000;
        let temp = tempfile::tempdir()?;
        let dir = RunDir::at(&temp.path().join("run"))?;
        let mut ahead = TimeNamespace::default();
        ahead.monotonic = DAY;
        let first = shared_offset(&dir, ahead)?;
        assert_eq!(shared_offset(&dir, ahead)?, first);
        assert_eq!(shared_offset(&dir, TimeNamespace::default())?, first + DAY);
        let identities = [ahead, TimeNamespace::default()].map(|namespace| info(0, Some(namespace)).uuid);
        assert_eq!(identities[1], tracepoint_reader::internal::boot_id());
        assert_ne!(identities[0], identities[1]);
        assert_eq!(info(0, None).uuid, None);
        Ok(())
    }

    #[test]
    fn a_stored_offset_is_used_if_it_is_valid() -> Result<(), Box<dyn std::error::Error>> {
        let temp = tempfile::tempdir()?;
        let dir = RunDir::at(&temp.path().join("run"))?;
        let store = |offset| FILE.lock(&dir)?.write([offset]);
        store(5)?;
        assert_eq!(clock_info(&dir).0.offset, 5);
        store(i128::MAX)?;
        let (info, shared) = clock_info(&dir);
        shared?;
        assert_eq!(FILE.lock(&dir)?.read(), Some([info.offset.into()]));
        Ok(())
    }
}
