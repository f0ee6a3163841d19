//! The counterpart on systems other than Linux: the offset of the trace clock from UTC, measured by each process for itself.

use crate::rundir::RunDir;
use std::io;
use std::time::{SystemTime, UNIX_EPOCH};
use tracepoint_ring::clock::{Clock, ClockInUse, now, select};
use tracepoint_sinks::ClockInfo;

/// Number of measurements; the best one is used.
const MEASUREMENTS: usize = 32;

/// Selects the session's clock, if it sets one.
pub fn choose(clock: Option<Clock>) -> Result<(), ClockInUse> {
    clock.map_or(Ok(()), select)
}

/// Describes the clock. It has no identity: it may differ from those of other processes.
pub fn own_clock_info() -> ClockInfo {
    let one = |_| {
        let before = now().cast_signed();
        let real = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos() as i64);
        let after = now().cast_signed();
        (after - before, real - (before + (after - before) / 2))
    };
    let offset = (0..MEASUREMENTS).map(one).min().map_or(0, |(_, offset)| offset);
    ClockInfo { uuid: None, offset }
}

/// Is not reached: there is no [`RunDir`].
pub fn clock_info(_: &RunDir) -> (ClockInfo, io::Result<()>) {
    (own_clock_info(), Ok(()))
}
