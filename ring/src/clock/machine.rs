//! The time stamp counter of the processor, if there is one.

#[cfg(tsc)]
mod x86_64;
#[cfg(tsc)]
pub(super) use x86_64::{counter, counter_halves, ordered_counter, usable};

/// The counter's value in two halves, as the instruction returns it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ticks {
    /// Below 2³².
    pub(super) low: u64,
    /// Below 2³².
    pub(super) high: u64,
}

/// Returns the reason why the counter cannot be used.
#[cfg(not(tsc))]
pub(super) fn usable() -> Result<(), &'static str> {
    Err("no time stamp counter is supported on this target")
}

/// Its value is never used, because [`usable`] returns an error.
#[cfg(not(tsc))]
pub(super) fn counter() -> u64 {
    0
}

#[cfg(not(tsc))]
pub(super) use counter as ordered_counter;

/// The same as [`counter`].
#[cfg(not(tsc))]
pub(super) fn counter_halves() -> Ticks {
    Ticks { low: 0, high: 0 }
}
