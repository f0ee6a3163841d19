//! `tracectl man`: the manual pages.

use crate::failure::{self, Failure, Outcome};
use crate::{Arguments, Ended};
use clap::{Args, CommandFactory};
use std::fs;
use std::path::PathBuf;

/// Writes manual pages into a directory, one for each verb
#[derive(Debug, Args)]
#[command(after_help = format!("\
Examples:
  tracectl man ~/.local/share/man/man1

{}", failure::EXIT_CODES))]
pub(crate) struct Man {
    /// The directory; it is made if it is not there
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

impl Man {
    pub(crate) fn run(&self) -> Ended {
        let failed = |error| Failure::Senseless(format!("cannot write to {}: {error}", self.directory.display()));
        fs::create_dir_all(&self.directory).map_err(failed)?;
        clap_mangen::generate_to(Arguments::command(), &self.directory).map_err(failed)?;
        Ok(Outcome::Well)
    }
}
