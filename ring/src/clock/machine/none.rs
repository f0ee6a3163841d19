//! No counter is known on this target.

use super::{Ticks, counter_name};

/// The name of the counter, which is never in use.
pub const NAME: &str = "tsc";

/// Returns the reason why the counter cannot be used.
pub(in crate::clock) fn usable() -> Result<(), &'static str> {
    Err(concat!("no ", counter_name!(), " is supported on this target"))
}

/// Its value is never used, because [`usable`] returns an error.
pub(in crate::clock) fn counter() -> u64 {
    0
}

/// The same as [`counter`].
pub(in crate::clock) fn ordered_counter() -> u64 {
    0
}

/// The same as [`counter`].
pub(in crate::clock) fn counter_halves() -> Ticks {
    Ticks { low: 0, high: 0 }
}
