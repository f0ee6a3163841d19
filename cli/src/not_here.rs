//! What this program has on Linux only.

use crate::failure::{Failure, VerbResult};
use clap::Args;
use std::ffi::OsString;

/// Returns the failure of a verb or an option that needs Linux.
pub(crate) fn failure() -> Failure {
    Failure::Refused("not on this system, which has no agent: run it on Linux".to_owned())
}

/// Not on this system: needs Linux
#[derive(Debug, Args)]
pub(crate) struct NotHere {
    #[arg(hide = true, trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

impl NotHere {
    pub(crate) fn run(&self) -> VerbResult {
        Err(failure())
    }
}
