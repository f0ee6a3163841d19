//! The line that shows how it goes, where the standard error is a terminal.

use crate::units;
use indicatif::{ProgressBar, ProgressStyle};
use std::io::{IsTerminal, stderr};
use std::time::Instant;
use tracepoint_control::Counters;

/// Events a second, events, bytes and losses.
pub(super) struct LiveLine {
    bar: ProgressBar,
    before: Option<(Instant, u64)>,
}

impl LiveLine {
    pub(super) fn new() -> Self {
        let bar = if stderr().is_terminal() { ProgressBar::new_spinner() } else { ProgressBar::hidden() };
        bar.set_style(ProgressStyle::with_template("{elapsed} {msg}").unwrap_or_else(|_| ProgressStyle::default_bar()));
        Self { bar, before: None }
    }

    /// What was recorded, and how many events the budget has switched off.
    pub(super) fn show(&mut self, counters: &Counters, off: usize) {
        let now = Instant::now();
        let rate = self.before.map_or(0, |(then, recorded)| {
            let more = u128::from(counters.recorded.saturating_sub(recorded));
            more * 1_000_000 / (now - then).as_micros().max(1)
        });
        self.before = Some((now, counters.recorded));
        let off = if off > 0 { format!(", {off} off by the budget") } else { String::new() };
        self.bar.set_message(format!(
            "{rate} events/s, {} events, {}, lost {}{off}; Ctrl-C ends it",
            counters.recorded,
            units::bytes(counters.bytes),
            counters.total_lost()
        ));
        self.bar.tick();
    }

    pub(super) fn clear(&self) {
        self.bar.finish_and_clear();
    }
}
