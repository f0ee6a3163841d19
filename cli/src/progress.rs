//! How far long work is: a bar on the standard error, if that is a terminal and the work takes its time.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{IsTerminal, stderr};
use std::time::{Duration, Instant};

/// What takes less time needs no bar.
const PATIENCE: Duration = Duration::from_secs(1);

/// A bar that comes when it is needed, and goes by itself.
pub(crate) struct Bar {
    began: Instant,
    wanted: bool,
    shown: Option<ProgressBar>,
}

impl Bar {
    pub(crate) fn new() -> Self {
        Self { began: Instant::now(), wanted: stderr().is_terminal(), shown: None }
    }

    /// So many of so many bytes are done.
    pub(crate) fn set(&mut self, what: &str, done: u64, total: u64) {
        if !self.wanted || self.began.elapsed() < PATIENCE {
            return;
        }
        let bar = self.shown.get_or_insert_with(|| {
            let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr());
            let style = ProgressStyle::with_template("{msg} {bar:40} {bytes} of {total_bytes}, {eta}");
            bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
        });
        if bar.message() != what {
            bar.set_message(what.to_owned());
        }
        bar.set_length(total);
        bar.set_position(done);
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        if let Some(bar) = &self.shown {
            bar.finish_and_clear();
        }
    }
}
