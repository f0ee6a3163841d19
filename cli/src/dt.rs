//! `tracectl dt`: what is in the circular trace files of the Data-Trace library.

mod dump;
mod hex;
mod info;
mod postamble;

use crate::failure::{self, Outcome};
use crate::{Ended, output};
use clap::{Args, Subcommand};
use datatrace::DtReader;
use std::path::Path;

/// Shows dt files: circular trace files with postambles
///
/// Slots come out oldest first. One that was being overwritten when its writer was killed is left out; one that is damaged is told on
/// the standard error, and the others come out all the same.
#[derive(Debug, Args)]
#[command(arg_required_else_help = true, after_help = format!("\
Examples:
  tracectl dt info ip_trace.dt
  tracectl dt dump --format 'src:u32/x len:u16 proto:u8' ip_trace.dt
  tracectl dt postamble --raw ip_trace.dt > counters

{}", failure::EXIT_CODES))]
pub(crate) struct Dt {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Info(info::Info),
    Dump(dump::Dump),
    Postamble(postamble::Postamble),
}

impl Dt {
    pub(crate) fn run(&self) -> Ended {
        match &self.verb {
            Verb::Info(info) => info.run(),
            Verb::Dump(dump) => dump.run(),
            Verb::Postamble(postamble) => postamble.run(),
        }
    }
}

/// Tells what is damaged, and goes on.
fn complain(error: &datatrace::ReadError) -> Outcome {
    failure::say_error(&error.to_string());
    Outcome::Wanting
}

/// At the end: whether somebody was writing meanwhile.
fn settle(file: &DtReader, path: &Path, outcome: Outcome) -> Ended {
    if file.has_changed()? {
        let note = "was written to while it was read; what was shown may be of two ages";
        output::note(&format!("{} {note}", path.display()));
    }
    Ok(outcome)
}
