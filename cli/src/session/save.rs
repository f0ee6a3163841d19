//! `tracectl save`: writes the description of a session to a file.

use super::{SessionArguments, controller};
use crate::failure::{Outcome, VerbResult};
use crate::{output, output_file};
use clap::Args;
use std::path::{Path, PathBuf};
use tracepoint_session_io::ControlError;

/// Writes the description of a session to a file
///
/// `tracectl load` creates a session from it.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tracectl save flight flight.toml
  tracectl save flight | grep event")]
pub(crate) struct Save {
    #[command(flatten)]
    session: SessionArguments,
    /// The file; `-` is the standard output, which is the default
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// Write the description as one JSON object, which `tracectl load` does not read
    #[arg(long, conflicts_with = "file")]
    json: bool,
}

impl Save {
    pub(crate) fn run(&self) -> VerbResult {
        let name = &self.session.name;
        let spec = controller(self.session.pid)?.session(name)?.spec()?;
        if self.json {
            output::json(&spec)?;
            return Ok(Outcome::Success);
        }
        let text = spec.to_toml().map_err(|error| ControlError::SessionSpec { session: name.clone(), error })?;
        output_file::write(self.file.as_deref().unwrap_or(Path::new("-")), text.as_bytes())?;
        Ok(Outcome::Success)
    }
}
