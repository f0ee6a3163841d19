//! `tracectl top`: which events happen most, live or in a recorded trace, on a terminal.
//!
//! ```text
//!   keys ──▶ Model (what is shown; pure) ──▶ view ──▶ terminal
//!              ▲ Overview, Detail   │ Request
//!              └──── Source ◀───────┘   a trace that was recorded, or the processes that run now
//! ```
//!
//! The model and the view know no terminal and no source. [`terminal`] moves keys and refreshes between them, and leaves the terminal as it was
//! at the end, after a signal and after a panic.

mod model;
mod recorded;
mod source;
mod terminal;
#[cfg(test)]
mod tests;
mod view;

use crate::failure::{EXIT_CODES, Failure, VerbResult};
use crate::selection::EventSelection;
use clap::Args;
use recorded::Recorded;
use std::io::{IsTerminal, stdin, stdout};
use std::path::PathBuf;

/// Shows which events happen most, and what their fields hold, on a terminal
///
/// Over recorded traces: counts, rates between the first and the last event, and a line of the events over time. Return shows the fields of an
/// event: the distribution of a number, the most frequent values of any other field, and the last events.
#[derive(Debug, Args)]
#[command(after_help = format!("\
Examples:
  tracectl top /tmp/trace
  tracectl top -e 'http:*' /tmp/trace

Keys: up and down select, Return shows the fields of an event and Escape leaves them, left and right select a field,
s changes the order, q ends

{EXIT_CODES}"))]
pub(crate) struct Top {
    /// A directory with a CTF trace, or with several below it; or a dt file. Several paths are merged
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<PathBuf>,
    #[command(flatten)]
    selection: EventSelection,
}

impl Top {
    pub(crate) fn run(&self) -> VerbResult {
        if !stdout().is_terminal() || !stdin().is_terminal() {
            let text =
                "`top` needs a terminal for its input and its output; `tracectl stat` writes the same counts anywhere";
            return Err(Failure::Refused(text.to_owned()));
        }
        terminal::run(Recorded::open(&self.paths, &self.selection)?)
    }
}
