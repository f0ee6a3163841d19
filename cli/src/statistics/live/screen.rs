//! Text that is redrawn in place on a terminal, and appended elsewhere.

use crate::failure::Failure;
use crate::output;
use std::io::{IsTerminal, Write, stdout};
use terminal_size::terminal_size;

/// The output for repeated numbers.
pub(super) struct Screen {
    is_terminal: bool,
    /// Number of lines currently shown.
    lines: usize,
    is_first: bool,
}

/// Turns line wrapping off: long lines are cut at the edge of the terminal.
const NO_WRAP: &str = "\x1b[?7l";
const WRAP: &str = "\x1b[?7h";
/// Clears the screen from the cursor to the end.
const CLEAR: &str = "\x1b[J";

impl Screen {
    pub(super) fn new() -> Self {
        Self { is_terminal: stdout().is_terminal(), lines: 0, is_first: true }
    }

    /// Shows this text. On a terminal it replaces the previous one, and is cut to the lines that fit; elsewhere it follows after an empty line.
    pub(super) fn show(&mut self, text: &str) -> Result<(), Failure> {
        if !self.is_terminal {
            let mut out = output::styled();
            if !std::mem::take(&mut self.is_first) {
                writeln!(out)?;
            }
            out.write_all(text.as_bytes())?;
            return Ok(out.flush()?);
        }
        let height = terminal_size().map_or(24, |(_, height)| usize::from(height.0));
        let lines: Vec<_> = text.lines().collect();
        let fit = lines.len().min(height.saturating_sub(1).max(1));
        let mut raw = output::raw();
        if self.lines > 0 {
            write!(raw, "\x1b[{}F", self.lines)?;
        }
        write!(raw, "{CLEAR}{NO_WRAP}")?;
        raw.flush()?;
        drop(raw);
        let mut out = output::styled();
        for line in &lines[..fit] {
            writeln!(out, "{line}")?;
        }
        out.flush()?;
        drop(out);
        let mut raw = output::raw();
        write!(raw, "{WRAP}")?;
        self.lines = fit;
        Ok(raw.flush()?)
    }
}
