//! The counterpart on systems other than Linux, which have no running programs to ask.

use crate::failure::Failure;
use crate::not_here;
use crate::selection::EventSelection;
use clap::Args;
use std::path::PathBuf;

/// The options for running programs.
#[derive(Debug, Args)]
pub(crate) struct LiveArguments {
    #[command(flatten)]
    pub(super) programs: ProgramArguments,
}

/// Those that are refused. The others are unknown here.
#[derive(Debug, Args)]
pub(crate) struct ProgramArguments {
    #[arg(short, long, hide = true)]
    session: Option<String>,
    #[arg(short, long, hide = true)]
    pid: Option<u32>,
}

/// There is none.
pub(crate) enum Target {}

impl ProgramArguments {
    pub(super) const fn is_given(&self) -> bool {
        self.session.is_some() || self.pid.is_some()
    }

    /// Returns `None` if the operands are paths of traces.
    pub(crate) fn target(
        &self,
        operands: &[PathBuf],
        _selection: &EventSelection,
        _is_default: bool,
    ) -> Result<Option<Target>, Failure> {
        if self.is_given() {
            return Err(not_here::failure());
        }
        if operands.is_empty() {
            return Err(Failure::Usage("give the PATH of a trace".to_owned()));
        }
        Ok(None)
    }
}
