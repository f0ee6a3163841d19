//! The time stamp counter of the processor, where there is one.

#[cfg(tsc)]
mod x86_64;
#[cfg(tsc)]
pub(super) use x86_64::{counter, counter_halves, ordered_counter, usable};

/// Why the counter cannot be used: this target has none that is known here.
#[cfg(not(tsc))]
pub(super) fn usable() -> Result<(), &'static str> {
    Err("this target has no time stamp counter that could be trusted")
}

/// Its value is used by nobody: [`usable`] says no.
#[cfg(not(tsc))]
pub(super) fn counter() -> u64 {
    0
}

#[cfg(not(tsc))]
pub(super) use counter as ordered_counter;

/// As [`counter`].
#[cfg(not(tsc))]
pub(super) fn counter_halves() -> super::line::Ticks {
    super::line::Ticks { low: 0, high: 0 }
}
