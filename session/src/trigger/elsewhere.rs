//! The counterpart on systems other than Linux: a session with triggers is refused there, because its rings are in memory.

#[path = "error.rs"]
mod error;
#[path = "owner.rs"]
mod owner;

pub(crate) use error::{WatchError, WatchResult};
pub(crate) use owner::TriggerOwner;

use crate::event::Program;
use crate::statistics::LiveStatistic;
use std::sync::Weak;
use tracepoint_core::channel::OpenChannel;
use tracepoint_session_spec::TriggerSpec;

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
