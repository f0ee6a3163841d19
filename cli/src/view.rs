//! `tracectl view`: what was recorded, as text.

use crate::failure::{self, Outcome};
use crate::{Ended, output};
use clap::Args;
use std::io::Write;
use std::path::PathBuf;
use tracepoint_reader::text::{TextOptions, TextWriter};
use tracepoint_reader::{Item, Trace, json};

/// Shows the events of a trace, merged by time, one per line, and its losses where they happened
///
/// Reads CTF 1.8 directories, those of other tracers too. Several traces below PATH come out as one. Lines of events are
/// those of `babeltrace2`. Damage is told on the standard error; what is readable comes out all the same.
#[derive(Debug, Args)]
#[command(after_help = format!("\
Examples:
  tracectl view /tmp/trace
  tracectl view --utc --date /tmp/trace | less
  tracectl view --json /tmp/trace | jq 'select(.name == \"treehash:error\").fields'

{}", failure::EXIT_CODES))]
pub(crate) struct View {
    /// A directory with a CTF trace, or with several below it
    #[arg(value_name = "PATH")]
    path: PathBuf,
    /// Write one JSON object per line: events, losses and damage, told apart by `type`
    #[arg(long)]
    json: bool,
    /// Show times in UTC instead of the local time zone
    #[arg(long, conflicts_with = "json")]
    utc: bool,
    /// Show the date before each time
    #[arg(long, conflicts_with = "json")]
    date: bool,
}

impl View {
    pub(crate) fn run(&self) -> Ended {
        let trace = Trace::open(&self.path)?;
        let mut out = output::raw();
        let mut text = TextWriter::new(self.options());
        let mut outcome = Outcome::Well;
        for item in trace.items() {
            if let Item::Damage(damage) = &item {
                // What was read before the damage is shown before it.
                out.flush()?;
                failure::say_error(&format!("{damage}; what follows in this stream is not shown"));
                outcome = Outcome::Wanting;
            }
            match (self.json, &item) {
                (true, _) => json::write_item(&mut out, &item)?,
                (false, Item::Damage(_)) => {}
                (false, _) => text.write_item(&mut out, &item)?,
            }
        }
        out.flush()?;
        Ok(outcome)
    }

    fn options(&self) -> TextOptions {
        let mut options = TextOptions::default();
        options.utc = self.utc;
        options.date = self.date;
        options
    }
}
