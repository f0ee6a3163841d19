//! The progress of long operations, shown if the standard error is a terminal.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressFinish, ProgressStyle};
use std::io::{IsTerminal, stderr, stdout};
use std::time::{Duration, Instant};

/// Shorter operations show no bar.
const DELAY: Duration = Duration::from_secs(1);

/// The bar is removed on drop.
fn styled(bar: ProgressBar, template: &str) -> ProgressBar {
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    bar.with_style(style).with_finish(ProgressFinish::AndClear)
}

/// A progress bar for work of known size; it appears after a second, and is removed on drop.
pub(crate) struct Bar {
    began: Instant,
    bar: Option<ProgressBar>,
}

impl Bar {
    pub(crate) fn new() -> Self {
        Self { began: Instant::now(), bar: None }
    }

    /// Shows that `done` of `total` bytes are done.
    pub(crate) fn set(&mut self, what: &str, done: u64, total: u64) {
        if !stderr().is_terminal() || self.began.elapsed() < DELAY {
            return;
        }
        let bar = self.bar.get_or_insert_with(|| {
            let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr());
            styled(bar, "{msg} {bar:40} {bytes} of {total_bytes}, {eta}")
        });
        if bar.message() != what {
            bar.set_message(what.to_owned());
        }
        bar.set_length(total);
        bar.set_position(done);
    }
}

/// A line with counters for work of unknown size; removed on drop.
pub(crate) struct LiveLine {
    bar: ProgressBar,
    /// The time and the number of events of the last update.
    shown: Option<(Instant, u64)>,
}

impl LiveLine {
    /// The line of a verb that writes its data at the end.
    pub(crate) fn new() -> Self {
        Self::shown_if(stderr().is_terminal())
    }

    /// The line of a verb that writes data continuously: hidden if that data goes to a terminal.
    pub(crate) fn beside_data() -> Self {
        Self::shown_if(stderr().is_terminal() && !stdout().is_terminal())
    }

    pub(crate) fn hidden() -> Self {
        Self::shown_if(false)
    }

    fn shown_if(shown: bool) -> Self {
        let bar = if shown { ProgressBar::new_spinner() } else { ProgressBar::hidden() };
        Self { bar: styled(bar, "{elapsed} {wide_msg}"), shown: None }
    }

    pub(crate) fn is_shown(&self) -> bool {
        !self.bar.is_hidden()
    }

    /// Shows how many `what` there are, their rate since the last time, and `more`; at most every 400 ms.
    pub(crate) fn show(&mut self, what: &str, count: u64, more: impl FnOnce() -> String) {
        const INTERVAL: Duration = Duration::from_millis(400);
        let now = Instant::now();
        let rate = match self.shown {
            Some((before, _)) if now - before < INTERVAL => return,
            Some((before, earlier)) => {
                u128::from(count.saturating_sub(earlier)) * 1_000_000 / (now - before).as_micros().max(1)
            }
            None => 0,
        };
        self.shown = Some((now, count));
        self.bar.set_message(format!("{rate} {what}/s, {count} {what}, {}", more()));
        self.bar.tick();
    }
}

/// A line with the elapsed time of a verb that waits; removed on drop. Hidden if the verb's data goes to a terminal.
pub(crate) struct WaitingLine(LiveLine);

impl WaitingLine {
    pub(crate) fn new(text: String) -> Self {
        let line = LiveLine::beside_data();
        line.bar.set_message(text);
        line.bar.enable_steady_tick(Duration::from_secs(1));
        Self(line)
    }

    pub(crate) fn set(&self, text: String) {
        self.0.bar.set_message(text);
    }
}
