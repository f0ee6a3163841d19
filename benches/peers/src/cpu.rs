//! Processors for a measurement.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::sync::OnceLock;

/// The processors that the program was allowed to use when it started.
static ALLOWED: OnceLock<CpuSet> = OnceLock::new();

/// Pins this thread, and threads that it starts later, to the last processor that it may use, because the first ones serve most
/// interrupts. Returns that processor, or `None` if the system refused; the figures are then noisier, but not wrong.
pub fn pin() -> Option<usize> {
    let last = *allowed().last()?;
    pin_to(last).then_some(last)
}

/// The processors that the program was allowed to use when it started, in order.
pub fn allowed() -> Vec<usize> {
    let allowed = ALLOWED.get_or_init(|| sched_getaffinity(None).unwrap_or_else(|_| CpuSet::new()));
    (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu)).collect()
}

/// Pins this thread to one processor. Returns whether that succeeded.
pub fn pin_to(cpu: usize) -> bool {
    let mut one = CpuSet::new();
    one.set(cpu);
    sched_setaffinity(None, &one).is_ok()
}

/// Runs `start` with this thread on any processor, so that the threads that it starts are not pinned to the processor of the events.
pub fn anywhere<R>(start: impl FnOnce() -> R) -> R {
    let now = sched_getaffinity(None);
    if let Some(allowed) = ALLOWED.get() {
        // If the system refuses, they share the processor: slower, but not wrong.
        let _ = sched_setaffinity(None, allowed);
    }
    let result = start();
    if let Ok(now) = now {
        let _ = sched_setaffinity(None, &now);
    }
    result
}
