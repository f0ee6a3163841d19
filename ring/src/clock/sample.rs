//! Reads the time stamp counter and `CLOCK_MONOTONIC` at the same instant.

use super::machine::ordered_counter;
use super::system;

/// Both clocks at one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ClockSample {
    /// The counter, in ticks.
    pub(super) tsc: u64,
    /// `CLOCK_MONOTONIC`, in ns.
    pub(super) ns: u64,
    /// The maximum error of `ns` at `tsc`, in ns.
    pub(super) uncertainty: u64,
}

/// The number of attempts; the best one is used.
const ATTEMPTS: usize = 5;

/// Reads the counter between two readings of the clock, several times, and returns the attempt with the smallest uncertainty. The counter
/// is usable (see [`usable`](super::machine::usable)).
pub(super) fn compare_clocks() -> ClockSample {
    let attempt = || {
        let begin = system::monotonic();
        let tsc = ordered_counter();
        let apart = system::monotonic().saturating_sub(begin);
        ClockSample { tsc, ns: begin + apart / 2, uncertainty: apart.div_ceil(2) + 1 }
    };
    let mut best = attempt();
    for _ in 1..ATTEMPTS {
        let next = attempt();
        if next.uncertainty < best.uncertainty {
            best = next;
        }
    }
    best
}
