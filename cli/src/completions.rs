//! `tracectl completions`: shell completions.

use crate::failure::{EXIT_CODES, Outcome, VerbResult};
use crate::{help, output};
use clap::Args;
use clap_complete::{Shell, generate};
use std::io::Write;

/// Writes completions for a shell to the standard output
#[derive(Debug, Args)]
#[command(after_help = format!("\
Examples:
  tracectl completions bash > ~/.local/share/bash-completion/completions/tracectl
  tracectl completions zsh > ~/.zfunc/_tracectl

{EXIT_CODES}"))]
pub(crate) struct Completions {
    /// The shell
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

impl Completions {
    pub(crate) fn run(&self) -> VerbResult {
        // Into memory first: `generate` panics when a pipe is closed.
        let mut text = Vec::new();
        generate(self.shell, &mut help::command(), "tracectl", &mut text);
        let mut out = output::raw();
        out.write_all(&text)?;
        out.flush()?;
        Ok(Outcome::Success)
    }
}
