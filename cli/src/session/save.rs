//! `tracectl save`: writes down what is wanted of a session.

use super::controller;
use crate::failure::{self, Failure, Outcome};
use crate::{Ended, output};
use clap::Args;
use std::io::Write;
use std::path::PathBuf;
use tracepoint_control::ControlError;

/// Writes a session's description to a file, for `tracectl load`
#[derive(Debug, Args)]
#[command(after_help = format!("\
Examples:
  tracectl save flight flight.toml
  tracectl save flight | grep event

{}", failure::EXIT_CODES))]
pub(crate) struct Save {
    /// The session
    #[arg(value_name = "NAME")]
    name: String,
    /// The file [default: the standard output]
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// Use the run directory of this process, as it sees it
    #[arg(short, long, value_name = "PID")]
    pid: Option<u32>,
}

impl Save {
    pub(crate) fn run(&self) -> Ended {
        let spec = controller(self.pid)?.session(&self.name)?.spec()?;
        let failed = |error| ControlError::Spec { session: self.name.clone(), error };
        let text = spec.to_toml().map_err(failed)?;
        if let Some(file) = &self.file {
            let failed = |error| Failure::Senseless(format!("cannot write {}: {error}", file.display()));
            std::fs::write(file, text).map_err(failed)?;
        } else {
            let mut out = output::raw();
            out.write_all(text.as_bytes())?;
            out.flush()?;
        }
        Ok(Outcome::Well)
    }
}
