//! The alignment of a trace's clock with the clock of the collector that stored the trace.
//!
//! The clocks of hosts differ. A sender estimates the offset that converts a time of its trace to a time of the collector. The
//! collector stores it next to the account, as lines of time, offset and error bound (`docs/format-stream.md`). When traces from one collector are
//! merged, these offsets replace those in their metadata. Traces with the same clock share the offset with the smallest
//! bound, so that the order of their times stays exact.

use crate::metadata::Clock;
use crate::source;
use fileguard::FileExt;
use std::io;
use std::path::Path;

/// Path of the file in a trace.
const ALIGNMENT_PATH: &str = ".account/clock-alignment";
/// Number of bytes read from the end of the file, which contain the last lines.
const READ: u64 = 512;

/// The alignment of a trace's clock with that of its collector. All values are nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClockAlignment {
    /// Added to a time of the trace to get a time since the epoch, by the collector's clock.
    pub offset: i64,
    /// The error bound of the offset, at the end of the recording.
    pub bound: u64,
    /// How much later the events are shown than their host's clock recorded them. Positive if that clock is behind.
    pub correction: i64,
}

impl ClockAlignment {
    /// The alignment of a clock with this offset; `clock` has its original offset.
    pub(crate) fn of(clock: &Clock, offset: i64, bound: u64) -> Self {
        Self { offset, bound, correction: offset.saturating_sub(clock.nanoseconds(0)) }
    }
}

/// The offset and the bound in the last complete line.
pub(crate) fn read(trace: &Path) -> Option<(i64, u64)> {
    let mut bytes = vec![0; READ as usize];
    let size = read_end(trace, &mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes[..size]);
    // A killed collector may leave an incomplete line.
    let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
    let mut numbers = whole.rsplit('\n').next().unwrap_or_default().split(' ').skip(1);
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

fn read_end(trace: &Path, bytes: &mut [u8]) -> io::Result<usize> {
    let file = source::open(&trace.join(ALIGNMENT_PATH))?;
    let start = file.metadata()?.len().saturating_sub(READ);
    file.read_at(bytes, start)
}
