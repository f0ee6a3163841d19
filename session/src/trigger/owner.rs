//! The owner of triggers: a session, in a process or in the run directory.

use std::path::PathBuf;
use tracepoint_reader::process::ProcessKey;

/// The owner of the triggers.
#[derive(Clone, Debug)]
pub(crate) struct TriggerOwner {
    /// The run directory.
    pub(crate) run_dir: PathBuf,
    pub(crate) session: String,
    /// This process, if it has started the session in code.
    pub(crate) process: Option<ProcessKey>,
}
