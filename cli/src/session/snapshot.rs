//! `tracectl snapshot`: writes the current contents of a session's rings.

use super::SessionArguments;
use crate::failure::{EXIT_CODES, VerbResult};
use crate::recover::Recover;
use clap::Args;
use std::path::PathBuf;
use tracepoint_control::ControlError;

/// Writes the current contents of a session's rings, of running processes and of those that died
///
/// Reads the rings from outside and leaves them as they are; also those of a session that a program has started in code, unless they are in memory
/// (`.in_memory()`) or elsewhere (`.dir(path)`). The account of a running process says that it is a snapshot; `tracectl verify`
/// balances it.
#[derive(Debug, Args)]
#[command(after_help = format!("\
Examples:
  tracectl snapshot flight -o /tmp/flight && tracectl view /tmp/flight

{EXIT_CODES}"))]
pub(crate) struct Snapshot {
    #[command(flatten)]
    session: SessionArguments,
    /// The output: a directory that is empty, or does not exist
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,
    /// Write one JSON object, as `tracectl recover` does
    #[arg(long)]
    json: bool,
}

impl Snapshot {
    pub(crate) fn run(&self) -> VerbResult {
        let controller = self.session.controller()?;
        let path = match controller.session(&self.session.name) {
            Err(error @ ControlError::InCode { .. }) => {
                controller.session_directory(&self.session.name).ok_or(error)?
            }
            session => session?.path(),
        };
        Recover::snapshot(path, self.output.clone(), self.json).run()
    }
}
