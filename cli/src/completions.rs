//! `tracectl completions`: what a shell needs to complete our command lines.

use crate::failure::{self, Outcome};
use crate::{Arguments, Ended, output};
use clap::{Args, CommandFactory};
use clap_complete::{Shell, generate};
use std::io::Write;

/// Writes completions for a shell to the standard output
#[derive(Debug, Args)]
#[command(after_help = format!("\
Examples:
  tracectl completions bash > ~/.local/share/bash-completion/completions/tracectl

{}", failure::EXIT_CODES))]
pub(crate) struct Completions {
    /// The shell
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

impl Completions {
    pub(crate) fn run(&self) -> Ended {
        // Into memory first: it does not stop for a pipe that is closed.
        let mut text = Vec::new();
        generate(self.shell, &mut Arguments::command(), "tracectl", &mut text);
        let mut out = output::raw();
        out.write_all(&text)?;
        out.flush()?;
        Ok(Outcome::Well)
    }
}
