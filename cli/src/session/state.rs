//! `tracectl start` and `tracectl stop`.

use super::{Reach, controller, settle};
use crate::{Ended, failure};
use clap::Args;
use tracepoint_control::State;

/// Starts a session: its events are on in all processes, those to come included
#[derive(Debug, Args)]
#[command(after_help = failure::EXIT_CODES)]
pub(crate) struct Start {
    #[command(flatten)]
    which: Which,
}

/// Stops a session: its events are off, and its traces whole
///
/// Without an output, what is in the rings stays there for `tracectl snapshot`.
#[derive(Debug, Args)]
#[command(after_help = failure::EXIT_CODES)]
pub(crate) struct Stop {
    #[command(flatten)]
    which: Which,
}

#[derive(Debug, Args)]
struct Which {
    /// The session
    #[arg(value_name = "NAME")]
    name: String,
    /// Use the run directory of this process, as it sees it
    #[arg(short, long, value_name = "PID")]
    pid: Option<u32>,
    #[command(flatten)]
    reach: Reach,
}

impl Start {
    pub(crate) fn run(&self) -> Ended {
        self.which.change("start", State::Active)
    }
}

impl Stop {
    pub(crate) fn run(&self) -> Ended {
        self.which.change("stop", State::Stopped)
    }
}

impl Which {
    fn change(&self, what: &str, state: State) -> Ended {
        let controller = controller(self.pid)?;
        let session = controller.session(&self.name)?;
        let generation = session.change(what, |spec| {
            spec.state = state;
            Ok(())
        })?;
        settle(&session, generation, self.reach.timeout)
    }
}
