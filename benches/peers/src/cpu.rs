//! Processors for a measurement.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::sync::OnceLock;

/// What the program was allowed to use at first.
static ALLOWED: OnceLock<CpuSet> = OnceLock::new();

/// Keeps this thread, and those that it starts from now on, on the last processor that it may use; the first ones serve most
/// interrupts. Says which, or that it was refused, which makes figures noisier and not wrong.
pub fn pin() -> Option<usize> {
    let last = *allowed().last()?;
    pin_to(last).then_some(last)
}

/// The processors that the program was allowed to use at first, in order.
pub fn allowed() -> Vec<usize> {
    let allowed = ALLOWED.get_or_init(|| sched_getaffinity(None).unwrap_or_else(|_| CpuSet::new()));
    (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu)).collect()
}

/// Keeps this thread on one processor; whether it could be done.
pub fn pin_to(cpu: usize) -> bool {
    let mut one = CpuSet::new();
    one.set(cpu);
    sched_setaffinity(None, &one).is_ok()
}

/// Runs `start` with this thread on any processor: the threads that it starts are not kept on the one where the events are.
pub fn anywhere<R>(start: impl FnOnce() -> R) -> R {
    let now = sched_getaffinity(None);
    if let Some(allowed) = ALLOWED.get() {
        // If it is refused, they share the processor: slower, and not wrong.
        let _ = sched_setaffinity(None, allowed);
    }
    let result = start();
    if let Ok(now) = now {
        let _ = sched_setaffinity(None, &now);
    }
    result
}
