//! `tracectl start` and `tracectl stop`.

use super::{ChangeArguments, SessionArguments, acks, controller};
use crate::failure::VerbResult;
use clap::Args;
use tracepoint_session_spec::State;

/// Starts a session: switches its events on
///
/// Events are switched on in all processes, including those that start later.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tracectl start flight")]
pub(crate) struct Start {
    #[command(flatten)]
    change: Change,
}

/// Stops a session and completes its traces
///
/// The events are switched off in all processes. Without an output, the events stay in the rings for `tracectl snapshot`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tracectl stop flight && tracectl snapshot flight -o /tmp/flight")]
pub(crate) struct Stop {
    #[command(flatten)]
    change: Change,
}

#[derive(Debug, Args)]
struct Change {
    #[command(flatten)]
    session: SessionArguments,
    #[command(flatten)]
    reply: ChangeArguments,
}

impl Start {
    pub(crate) fn run(&self) -> VerbResult {
        self.change.to("start", State::Active)
    }
}

impl Stop {
    pub(crate) fn run(&self) -> VerbResult {
        self.change.to("stop", State::Stopped)
    }
}

impl Change {
    fn to(&self, verb: &str, state: State) -> VerbResult {
        let controller = controller(self.session.pid)?;
        let session = controller.session(&self.session.name)?;
        let generation = session.change(verb, |spec| {
            spec.state = state;
            Ok(())
        })?;
        acks::wait(&session, generation, &self.reply)
    }
}
