//! `tracectl completions`: shell completions. The shell runs this program to get the current candidates.

use crate::failure::{Failure, Outcome, VerbResult};
use crate::{help, output};
use clap::Args;
use clap_complete::env::Shells;
use clap_complete::{CompleteEnv, Shell};
use std::io::Write;

/// The environment variable with which the shell requests candidates.
const VARIABLE: &str = "TRACECTL_COMPLETE";

/// Writes completions for a shell
///
/// Besides verbs, options and files, they complete the ids of processes that can be traced (`--pid`) and the names of sessions.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tracectl completions bash > ~/.local/share/bash-completion/completions/tracectl
  tracectl completions zsh > ~/.zfunc/_tracectl")]
pub(crate) struct Completions {
    /// The shell
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

impl Completions {
    pub(crate) fn run(&self) -> VerbResult {
        let (shells, name) = (Shells::builtins(), self.shell.to_string());
        let shell = shells.completer(&name).ok_or_else(|| Failure::Usage(format!("{name} has no completions")))?;
        let mut out = output::raw();
        shell.write_registration(VARIABLE, "tracectl", "tracectl", "tracectl", &mut out)?;
        out.flush()?;
        Ok(Outcome::Success)
    }
}

/// Answers a shell that requests candidates, and then ends the program.
pub(crate) fn answer() {
    CompleteEnv::with_factory(help::command).var(VARIABLE).complete();
}
