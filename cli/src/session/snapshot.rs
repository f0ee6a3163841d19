//! `tracectl snapshot`: what is in a session's rings just now.

use super::controller;
use crate::recover::Recover;
use crate::{Ended, failure};
use clap::Args;
use std::path::PathBuf;

/// Takes what is in a session's rings now, of processes that run and of those that died
///
/// Needs no help of the processes, and leaves the rings as they are. Of a process that runs, the account of the trace is told as
/// incomplete.
#[derive(Debug, Args)]
#[command(after_help = format!("\
Examples:
  tracectl snapshot flight -o /tmp/flight && tracectl view /tmp/flight

{}", failure::EXIT_CODES))]
pub(crate) struct Snapshot {
    /// The session
    #[arg(value_name = "NAME")]
    name: String,
    /// Where the traces go: a directory that is empty, or does not exist
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,
    /// Write one JSON object, as `tracectl recover` does
    #[arg(long)]
    json: bool,
    /// Use the run directory of this process, as it sees it
    #[arg(short, long, value_name = "PID")]
    pid: Option<u32>,
}

impl Snapshot {
    pub(crate) fn run(&self) -> Ended {
        let controller = controller(self.pid)?;
        let session = controller.session(&self.name)?;
        Recover::snapshot(session.path(), self.output.clone(), self.json).run()
    }
}
