//! `tracectl top`: the most frequent events, live or in a recorded trace, on a terminal.
//!
//! ```text
//!   keys ──▶ Model (what is shown; pure) ──▶ view ──▶ terminal
//!              ▲ Overview, Detail   │ Request
//!              └──── Source ◀───────┘   a trace that was recorded, or the processes that run now
//! ```
//!
//! The model and the view do not depend on the terminal or the source. [`terminal`] passes keys and refreshes between them, and restores the terminal
//! at the end, on a signal and on a panic.

mod live;
mod model;
mod source;
mod terminal;
#[cfg(test)]
mod tests;
mod trace;
mod view;

use crate::failure::{Failure, VerbResult};
use crate::selection::EventSelection;
use crate::session::controller;
use crate::statistics::live::ProgramArguments;
use clap::Args;
use live::Live;
use std::io::{IsTerminal, stdin, stdout};
use std::path::PathBuf;
use trace::TraceSource;

/// Shows the most frequent events, on a terminal
///
/// Also shows the contents of their fields. Of running programs, without the path of a trace: the events that the operands and `-e` name, or all of
/// them; they are counted, and not recorded. `-s SESSION` shows the events that the rules of a session select. Space switches an event off and on:
/// for this display, or in the session. Return shows the fields of an event: the distribution of a number, the most frequent values of any other
/// field, and the last events. Counting and recording end with this program; an event that was switched off in a session stays off.
///
/// Of recorded traces: the same, with rates between the first and the last event.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tracectl top
  tracectl top 'shop:*' -p 4242
  tracectl top -s flight
  tracectl top /tmp/trace
  tracectl top -e 'http:*' /tmp/trace

Keys:
  up and down select an event, Return shows its fields and Escape leaves them
  left and right select a field, Space switches an event off or on
  s changes the order, p pauses, q ends")]
pub(crate) struct Top {
    /// A directory with a CTF trace, or with several below it; or a dt file. Several paths are merged. Or events of running programs, as
    /// `provider:name` with `*`, `?` and `[a-z]`
    #[arg(value_name = "PATH|EVENT")]
    paths: Vec<PathBuf>,
    #[command(flatten)]
    selection: EventSelection,
    #[command(flatten)]
    programs: ProgramArguments,
}

impl Top {
    pub(crate) fn run(&self) -> VerbResult {
        if !stdout().is_terminal() || !stdin().is_terminal() {
            let text =
                "`top` needs a terminal for its input and its output; `tracectl stat` writes the same counts anywhere";
            return Err(Failure::Refused(text.to_owned()));
        }
        let Some(target) = self.programs.target(&self.paths, &self.selection, true)? else {
            return terminal::run(TraceSource::open(&self.paths, &self.selection)?);
        };
        let controller = controller(self.programs.pid)?;
        terminal::run(Live::start(&controller, &self.programs, target)?)
    }
}
