//! The totals reported by a server.

use std::time::Duration;

/// The highest totals so far, and the time of their report.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Totals {
    /// Batches, modulo 2^32.
    pub(super) batches: u32,
    pub(super) events: u64,
    pub(super) since: Duration,
}

impl Totals {
    pub(super) fn learn(&mut self, batches: u32, events: u64, now: Duration) {
        if events > self.events {
            *self = Self { batches, events, since: now };
        }
    }
}
