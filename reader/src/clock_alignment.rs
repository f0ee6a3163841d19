//! The alignment of a trace's clock with the clock of the collector that has stored it.
//!
//! Hosts do not agree on the time of day. A sender estimates what to add to a time of its trace to get a time of the collector, and the
//! collector writes that beside the account, as lines of time, offset and error bound (`docs/format-stream.md`). Traces of one collector that are
//! merged get these offsets in place of those in their metadata. Traces with the same clock get the same one, that with the least
//! bound, because between them the order of times is exact.

use crate::metadata::Clock;
use crate::source;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Where the file is in a trace.
const ALIGNMENT_PATH: &str = ".account/clock-alignment";
/// The end of the file that is read: the last lines.
const READ: u64 = 512;

/// How the clock of a trace was aligned with that of its collector. All are nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClockAlignment {
    /// What is added to a time of the trace to get a time since the epoch, by the collector's clock.
    pub offset: i64,
    /// The error bound of the offset, at the end of the recording.
    pub bound: u64,
    /// How much later the events are shown than by the clock of the host that has recorded them. Positive: that clock is behind.
    pub correction: i64,
}

impl ClockAlignment {
    /// That of a clock, before it is aligned.
    pub(crate) fn of(clock: &Clock, offset: i64, bound: u64) -> Self {
        Self { offset, bound, correction: offset.saturating_sub(clock.nanoseconds(0)) }
    }
}

/// The offset and the bound in the last whole line.
pub(crate) fn read(trace: &Path) -> Option<(i64, u64)> {
    let mut bytes = vec![0; READ as usize];
    let size = read_end(trace, &mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes[..size]);
    // A killed collector may leave a part of a line.
    let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
    let mut numbers = whole.rsplit('\n').next().unwrap_or_default().split(' ').skip(1);
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

fn read_end(trace: &Path, bytes: &mut [u8]) -> io::Result<usize> {
    let file = source::open(&trace.join(ALIGNMENT_PATH))?;
    let start = file.metadata()?.len().saturating_sub(READ);
    file.read_at(bytes, start)
}
