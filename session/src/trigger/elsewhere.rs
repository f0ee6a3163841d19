//! The counterpart on systems other than Linux: a session with triggers is refused there, because its rings are in memory.

#[path = "error.rs"]
mod error;

pub(crate) use error::WatchError;

use crate::event::Program;
use crate::statistics::LiveStatistic;
use std::path::PathBuf;
use std::sync::Weak;
use tracepoint_core::channel::OpenChannel;
use tracepoint_reader::process::ProcessKey;
use tracepoint_session_spec::TriggerSpec;

/// The owner of the triggers.
#[derive(Clone, Debug)]
pub(crate) struct TriggerOwner {
    pub(crate) run_dir: PathBuf,
    pub(crate) session: String,
    pub(crate) process: Option<ProcessKey>,
}

/// The id of a trigger, and the number of events or statistics that it watches, or the reason why it cannot be watched.
pub(crate) type WatchResult = (String, Result<Option<usize>, WatchError>);

/// No triggers.
#[derive(Debug, Default)]
pub(crate) struct InProcessTriggers;

impl InProcessTriggers {
    #[expect(clippy::unused_self, reason = "the counterpart has triggers")]
    pub(crate) const fn retain(&self, _: &[&TriggerSpec]) {}

    #[expect(clippy::unused_self, reason = "the counterpart has triggers")]
    pub(crate) const fn follow(
        &self,
        _: &TriggerOwner,
        _: &[&TriggerSpec],
        _: Program<'_>,
        _: &[Weak<OpenChannel>],
        _: &[LiveStatistic],
    ) -> Vec<WatchResult> {
        Vec::new()
    }
}
