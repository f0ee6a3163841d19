//! The offset of the trace clock from UTC.
//!
//! Times of events are those of `CLOCK_MONOTONIC`; viewers show the time of day, and merge traces by it. Two measurements of the offset
//! between the two clocks never agree exactly: if each process measured it, their events would be microseconds apart in a merged trace,
//! and effects could precede their causes. The offset is therefore measured once per boot, and stored in the file `clock` of the run
//! directory. It stays unchanged when the wall clock is set later, because agreement between the traces of one boot matters more.

use crate::boot_file::{BootFile, boot_id};
use crate::rundir::RunDir;
use crate::tsc;
use rustix::time::{ClockId, Timespec, clock_gettime};
use std::io;
use tracepoint_core::clock::{Clock, ClockInUse, select, selected};
use tracepoint_sinks::ClockInfo;
use uuid::Uuid;

const FILE: BootFile<1> = BootFile { name: "clock", numbers: ["offset_ns"] };
/// Number of measurements, of which the best is used.
const MEASUREMENTS: usize = 32;

/// Selects the session's clock, if it sets one, and prepares the selected clock.
pub(crate) fn choose(clock: Option<Clock>) -> Result<(), ClockInUse> {
    clock.map_or(Ok(()), select)?;
    if matches!(selected(), Clock::Monotonic) {
        tsc::trust();
    }
    Ok(())
}

/// Description of the clock, with the offset shared by all processes that use `run_dir`. If the directory cannot be used, with an offset
/// of this process alone, and the error.
pub(crate) fn clock_info(run_dir: &RunDir) -> (ClockInfo, io::Result<()>) {
    match shared_offset(run_dir) {
        Ok(offset) => (info(offset), Ok(())),
        Err(error) => (info(measure()), Err(error)),
    }
}

/// Description of the clock with an offset of this process alone.
pub(crate) fn own_clock_info() -> ClockInfo {
    info(measure())
}

fn info(offset: i64) -> ClockInfo {
    ClockInfo { uuid: boot_id().map(Uuid::into_bytes), offset }
}

fn shared_offset(run_dir: &RunDir) -> io::Result<i64> {
    let locked = FILE.lock(run_dir)?;
    if let Some(offset) = locked.read().and_then(|[offset]| i64::try_from(offset).ok()) {
        return Ok(offset);
    }
    let offset = measure();
    locked.write([offset.into()])?;
    Ok(offset)
}

/// Measures `CLOCK_REALTIME` - `CLOCK_MONOTONIC` in ns: reads the former between two readings of the latter; the closest pair wins.
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
