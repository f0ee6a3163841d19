//! `tracectl dt`: the circular trace files of the Data-Trace library.

mod dump;
mod hex;
mod info;
mod postamble;

use crate::failure::{Outcome, VerbResult};
use crate::message;
use crate::verbs::verbs;
use clap::Args;
use datatrace::DtReader;
use std::path::Path;

/// Shows dt files: circular trace files with postambles
///
/// Slots are shown oldest first. A slot that was being overwritten when its writer was killed is left out. A damaged slot is reported on the
/// standard error, and the others are shown.
#[derive(Debug, Args)]
#[command(
    arg_required_else_help = true,
    after_help = "\
Examples:
  tracectl dt info ip_trace.dt
  tracectl dt dump --format 'src:u32/x len:u16 proto:u8' ip_trace.dt
  tracectl dt postamble --raw ip_trace.dt > counters"
)]
pub(crate) struct Dt {
    #[command(subcommand)]
    verb: Verb,
}

verbs! {
    Info(info::Info),
    Dump(dump::Dump),
    Postamble(postamble::Postamble),
}

impl Dt {
    pub(crate) fn run(&self) -> VerbResult {
        self.verb.run()
    }
}

/// Reports damage that does not prevent showing the rest of the file.
fn report_damage(error: &datatrace::ReadError) -> Outcome {
    message::error(&error.to_string());
    Outcome::Incomplete
}

/// Ends a verb; notes if the file was written to in the meantime.
fn finish(file: &DtReader, path: &Path, outcome: Outcome) -> VerbResult {
    if file.has_changed()? {
        let path = path.display();
        message::note(&format!("{path} changed while it was read; older and newer parts may be mixed"));
    }
    Ok(outcome)
}
