//! `tracectl man`: manual pages.

use crate::failure::{Failure, Outcome, VerbResult};
use crate::help;
use clap::Args;
use std::fs;
use std::path::PathBuf;

/// Writes manual pages, one for each verb
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tracectl man ~/.local/share/man/man1 && man tracectl-record")]
pub(crate) struct Man {
    /// The directory; it is created if it does not exist
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

impl Man {
    pub(crate) fn run(&self) -> VerbResult {
        let failed = |error| {
            let directory = self.directory.display();
            Failure::Refused(format!("cannot write manual pages to {directory}: {error}; name another directory"))
        };
        fs::create_dir_all(&self.directory).map_err(failed)?;
        clap_mangen::generate_to(help::manual(), &self.directory).map_err(failed)?;
        Ok(Outcome::Success)
    }
}
