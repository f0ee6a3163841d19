//! Data on the standard output, messages and progress on the standard error.

use std::io::{self, IsTerminal, Write, stderr, stdout};

use serde::Serialize;

/// Prints a message, with control characters escaped.
pub(crate) fn message(kind: &str, text: &str) {
    let text = tracepoint_reader::text::escape_controls(&text.replace('\n', "\\n"), &[]).into_owned();
    // A failed write to the standard error is ignored: there is no other place to report it.
    _ = writeln!(stderr(), "{kind}: {text}");
}

/// Prints one line of data.
pub(crate) fn line(text: &str) -> io::Result<()> {
    writeln!(stdout(), "{text}")
}

/// Prints one object.
pub(crate) fn json(object: &impl Serialize) -> io::Result<()> {
    line(&tracepoint_reader::json::to_string(object)?)
}

/// A number and its noun.
pub(crate) fn counted(count: u64, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// A share of work, if the standard error is a terminal; removed on drop.
pub(crate) struct Progress {
    is_shown: bool,
    percent: u64,
}

impl Progress {
    pub(crate) fn new() -> Self {
        Self { is_shown: stderr().is_terminal(), percent: 0 }
    }

    pub(crate) fn set(&mut self, done: u64, total: u64) {
        let percent = done.saturating_mul(100) / total.max(1);
        if self.is_shown && percent != self.percent {
            self.percent = percent;
            _ = write!(stderr(), "\r{percent:3} %");
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.percent > 0 {
            _ = write!(stderr(), "\r     \r");
        }
    }
}
