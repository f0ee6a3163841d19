//! Where the clock's zero is, in the time of the world.
//!
//! Times are those of `CLOCK_MONOTONIC`; viewers want the time of day, and merge traces by it. The distance between the two
//! clocks cannot be measured twice with the same result: two processes that measured it for themselves would be microseconds
//! apart in a merged trace, and effects would come before their causes. It is therefore measured once per boot, and kept in the
//! file `clock` of the run directory. Setting the machine's clock later does not change it: what matters more is that the
//! traces of one boot agree.

use crate::boot_file::{BootFile, boot_id};
use crate::rundir::RunDir;
use crate::tsc;
use rustix::time::{ClockId, Timespec, clock_gettime};
use std::io;
use tracepoint_core::clock::{Clock, ClockInUse, select, selected};
use tracepoint_sinks::ClockInfo;
use uuid::Uuid;

const FILE: BootFile<1> = BootFile { name: "clock", numbers: ["offset_ns"] };
/// How many measurements the best is taken of.
const MEASUREMENTS: usize = 32;

/// Selects the clock that a session asks for, if it does, and prepares the one that is selected.
pub(crate) fn choose(clock: Option<Clock>) -> Result<(), ClockInUse> {
    clock.map_or(Ok(()), select)?;
    if matches!(selected(), Clock::Monotonic) {
        tsc::trust();
    }
    Ok(())
}

/// The clock of this boot, as all processes that share `run_dir` see it. Without a directory that can be used, as this process
/// alone sees it, and the error says why.
pub(crate) fn clock_info(run_dir: &RunDir) -> (ClockInfo, io::Result<()>) {
    match shared_offset(run_dir) {
        Ok(offset) => (info(offset), Ok(())),
        Err(error) => (info(measure()), Err(error)),
    }
}

/// The clock as this process alone sees it.
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

/// The distance between the clocks, in ns: `CLOCK_REALTIME` between two readings of `CLOCK_MONOTONIC`, the closest of several.
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
    fn what_the_file_says_counts_if_it_can_be() -> Result<(), Box<dyn std::error::Error>> {
        let temp = tempfile::tempdir()?;
        let dir = RunDir::at(&temp.path().join("run"))?;
        let say = |offset| FILE.lock(&dir)?.write([offset]);
        say(5)?;
        assert_eq!(clock_info(&dir).0.offset, 5);
        say(i128::MAX)?;
        let (info, shared) = clock_info(&dir);
        shared?;
        assert_eq!(FILE.lock(&dir)?.read(), Some([info.offset.into()]));
        Ok(())
    }
}
