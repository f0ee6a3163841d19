//! How it goes: a line on the standard error, where that is a terminal and the events do not go to one.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{IsTerminal, stderr, stdout};
use std::time::{Duration, Instant};
use tracepoint_reader::udp::Counts;

/// How often it changes.
const EVERY: Duration = Duration::from_millis(500);

pub(super) struct Status {
    bar: Option<ProgressBar>,
    shown: Instant,
    events: u64,
}

impl Status {
    pub(super) fn new() -> Self {
        let wanted = stderr().is_terminal() && !stdout().is_terminal();
        let bar = wanted.then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            let style = ProgressStyle::with_template("{spinner} {msg}");
            bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()))
        });
        Self { bar, shown: Instant::now(), events: 0 }
    }

    pub(super) fn show(&mut self, counts: &Counts) {
        let passed = self.shown.elapsed();
        let Some(bar) = self.bar.as_ref().filter(|_| passed >= EVERY) else { return };
        let rate = u128::from(counts.events - self.events) * 1000 / passed.as_millis().max(1);
        let lost = counts.lost_events + counts.lost_messages;
        bar.set_message(format!("{} events, {rate}/s, {lost} lost, {} late", counts.events, counts.late_messages));
        bar.tick();
        self.shown = Instant::now();
        self.events = counts.events;
    }
}

impl Drop for Status {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
