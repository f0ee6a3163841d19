//! The verbs of named sessions, and parts shared with `record` and `list`.

pub(crate) mod acks;
pub(crate) mod budget;
pub(crate) mod channels;
pub(crate) mod create;
pub(crate) mod destroy;
pub(crate) mod disable;
pub(crate) mod enable;
pub(crate) mod in_code;
pub(crate) mod leftover;
pub(crate) mod load;
pub(crate) mod memory;
pub(crate) mod outputs;
pub(crate) mod rotate;
pub(crate) mod rules;
pub(crate) mod save;
pub(crate) mod snapshot;
pub(crate) mod state;
pub(crate) mod status;

use crate::units;
use clap::Args;
use std::time::Duration;
use tracepoint_controller::Controller;
use tracepoint_session_io::ControlError;

/// Waiting for processes.
#[derive(Debug, Args)]
pub(crate) struct WaitArguments {
    /// How long to wait for processes that do not answer
    #[arg(long, value_name = "TIME", value_parser = units::duration, default_value = "2s")]
    pub(crate) timeout: Duration,
}

/// Waiting for processes, and the output of a verb that changes a session.
#[derive(Debug, Args)]
pub(crate) struct ChangeArguments {
    #[command(flatten)]
    pub(crate) wait: WaitArguments,
    /// Write one JSON object: `session`, `complete`, `processes` (what each has acknowledged), and `silent` (the ids of those that have not)
    #[arg(long)]
    pub(crate) json: bool,
}

/// The session of a verb, and its run directory.
#[derive(Debug, Args)]
pub(crate) struct SessionArguments {
    /// The session
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// Use the run directory that this process uses
    #[arg(short, long, value_name = "PID")]
    pub(crate) pid: Option<u32>,
}

/// The controller of the run directory that a process uses, or of this user's.
pub(crate) fn controller(pid: Option<u32>) -> Result<Controller, ControlError> {
    pid.map_or_else(Controller::find, Controller::of_process)
}
