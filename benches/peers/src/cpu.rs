//! One processor for a measurement.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Keeps this thread, and those that it starts from now on, on the last processor that it may use; the first ones serve most
/// interrupts. Says which, or that it was refused, which makes figures noisier and not wrong.
pub fn pin() -> Option<usize> {
    let allowed = sched_getaffinity(None).ok()?;
    let last = (0..CpuSet::MAX_CPU).rev().find(|cpu| allowed.is_set(*cpu))?;
    let mut one = CpuSet::new();
    one.set(last);
    sched_setaffinity(None, &one).ok()?;
    Some(last)
}
