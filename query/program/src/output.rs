//! Writes data to the standard output, messages and progress to the standard error.

use std::io::{self, IsTerminal, Write, stderr, stdout};

use serde::Serialize;
use tracepoint_reader::text::escape_controls;

/// Prints a message, with control characters escaped.
pub(crate) fn message(kind: &str, text: &str) {
    // Ignore a failed write to the standard error: there is no other place to report it.
    _ = writeln!(stderr(), "{kind}: {}", in_line(text));
}

/// Prints one line of text, with control characters escaped: text of a trace must not control the user's terminal.
pub(crate) fn line(text: &str) -> io::Result<()> {
    writeln!(stdout(), "{}", in_line(text))
}

/// The text in one line, with control characters escaped.
pub(crate) fn in_line(text: &str) -> String {
    escape_controls(&text.replace('\n', "\\n"), &[]).into_owned()
}

/// Prints one object.
pub(crate) fn json(object: &impl Serialize) -> io::Result<()> {
    writeln!(stdout(), "{}", tracepoint_reader::json::to_string(object)?)
}

/// Prints lines of data unchanged, except that control characters are escaped on a terminal.
pub(crate) fn data(lines: &str) -> io::Result<()> {
    let is_terminal = stdout().is_terminal();
    stdout().write_all(if is_terminal { escape_controls(lines, &['\n', '\t']) } else { lines.into() }.as_bytes())
}

/// Formats a count with its noun.
pub(crate) fn counted(count: u64, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// Progress in percent, shown if the standard error is a terminal. Removed on drop.
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
