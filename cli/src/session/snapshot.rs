//! `tracectl snapshot`: writes the current contents of a session's rings.

use super::{SessionArguments, controller};
use crate::failure::{Failure, VerbResult};
use crate::recover::Recover;
use clap::Args;
use std::path::PathBuf;
use tracepoint_reader::RecoverError;
use tracepoint_session_io::ControlError;
use tracepoint_session_spec::SessionSpec;

/// Writes the current contents of a session's rings
///
/// Includes the rings of processes that have died. Reads the rings from outside and does not change them. Sessions that programs start in code are
/// included, unless their rings are in memory (`.in_memory()`) or elsewhere (`.dir(path)`). The account of a running process is marked as a
/// snapshot; `tracectl verify` balances it.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tracectl snapshot flight -o /tmp/flight && tracectl view /tmp/flight")]
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
        let controller = controller(self.session.pid)?;
        let mut computes = false;
        let path = match controller.session(&self.session.name) {
            Err(error @ ControlError::SessionInCode { .. }) => {
                controller.session_directory(&self.session.name).ok_or(error)?
            }
            session => {
                let session = session?;
                // A damaged session may have rings.
                computes = session.spec().is_ok_and(|spec| computes_only(&spec));
                session.path()
            }
        };
        match Recover::snapshot(path, self.output.clone(), self.json).run() {
            Err(Failure::Recover(RecoverError::NoRings { .. } | RecoverError::NotBegun { .. })) if computes => {
                let name = &self.session.name;
                Err(Failure::Refused(format!(
                    "the session {name} has no rings: its rules only compute; `tracectl stat -s {name}` shows the numbers, and \
                     `tracectl enable {name} -e RULE` records events"
                )))
            }
            other => other,
        }
    }
}

/// True if the rules of a session only compute statistics and record nothing.
fn computes_only(spec: &SessionSpec) -> bool {
    let mut rules = spec.rules().flatten().filter(|rule| !rule.excludes()).peekable();
    rules.peek().is_some() && rules.all(|rule| !rule.records())
}
