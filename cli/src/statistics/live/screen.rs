//! Text that replaces itself on a terminal, and follows itself elsewhere.

use crate::failure::Failure;
use crate::output;
use std::io::{IsTerminal, Write, stdout};
use terminal_size::terminal_size;

/// Where the numbers are shown.
pub(super) struct Screen {
    is_terminal: bool,
    /// The lines that are shown.
    lines: usize,
    is_first: bool,
}

/// Lines are cut at the edge while they are written.
const NO_WRAP: &str = "\x1b[?7l";
const WRAP: &str = "\x1b[?7h";
/// Clears the screen from the cursor on.
const CLEAR: &str = "\x1b[J";

impl Screen {
    pub(super) fn new() -> Self {
        Self { is_terminal: stdout().is_terminal(), lines: 0, is_first: true }
    }

    /// Shows this text: in place of the last one on a terminal, of which it takes as many lines as fit; else below it, behind an empty line.
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
