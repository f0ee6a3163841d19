//! Samples events: a filter for a subscriber that suppresses all but one in N events.

use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU64, Ordering};
use tracepoint_core::marker::{Decision, FieldView, Filter};

/// Accepts one in N events and suppresses the others. The channel's account counts them as `suppressed`.
///
/// Counts events over all threads with one atomic addition each.
#[derive(Debug)]
pub struct Sample {
    one_in: NonZeroU64,
    seen: AtomicU64,
}

impl Sample {
    /// Accepts the first of each `one_in` events.
    pub fn one_in(one_in: NonZeroU64) -> Self {
        Self { one_in, seen: AtomicU64::new(0) }
    }

    /// Counts an event, and returns whether it is accepted.
    pub fn take(&self) -> bool {
        // Relaxed: the counter orders nothing else.
        self.seen.fetch_add(1, Ordering::Relaxed).is_multiple_of(self.one_in.get())
    }

    /// Number of suppressed events.
    pub fn suppressed(&self) -> u64 {
        let seen = self.seen.load(Ordering::Relaxed);
        seen - seen.div_ceil(self.one_in.get())
    }
}

impl Filter for Sample {
    fn accept(&self, _event: FieldView<'_>) -> bool {
        self.take()
    }

    fn decide(&self, _time: u64, event: FieldView<'_>) -> Decision {
        if self.accept(event) { Decision::Accept } else { Decision::Suppress }
    }
}
