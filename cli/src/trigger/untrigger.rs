//! `tracectl untrigger`: removes triggers of a session.

use super::SessionOption;
use crate::failure::{Outcome, VerbResult};
use crate::output;
use crate::session::controller;
use clap::Args;
use serde_json::json;
use tracepoint_controller::trigger::trigger_remove;

/// Removes triggers of a session
///
/// Snapshots that they have written stay.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tracectl untrigger -s flight t1")]
pub(crate) struct Untrigger {
    #[command(flatten)]
    session: SessionOption,
    /// The triggers, by the names that `tracectl triggers` shows
    #[arg(value_name = "ID", required = true)]
    ids: Vec<String>,
    /// Write one JSON object: `session` and `removed`
    #[arg(long)]
    json: bool,
}

impl Untrigger {
    pub(crate) fn run(&self) -> VerbResult {
        let controller = controller(self.session.pid)?;
        let session = self.session.session(&controller)?;
        for id in &self.ids {
            trigger_remove(&session, id)?;
        }
        if self.json {
            output::json(&json!({ "session": session.name(), "removed": self.ids }))?;
        }
        Ok(Outcome::Success)
    }
}
