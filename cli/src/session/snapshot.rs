//! `tracectl snapshot`: writes the current contents of a session's rings.

use super::SessionArguments;
use crate::failure::{EXIT_CODES, VerbResult};
use crate::recover::Recover;
use clap::Args;
use std::path::PathBuf;

/// Writes the current contents of a session's rings, of running processes and of those that died
///
/// Reads the rings from outside and leaves them as they are. The account of a running process says that it is a snapshot; `tracectl verify`
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
        let session = controller.session(&self.session.name)?;
        Recover::snapshot(session.path(), self.output.clone(), self.json).run()
    }
}
