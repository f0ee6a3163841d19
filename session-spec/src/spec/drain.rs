//! The process that drains the rings of a session.

use super::{SessionSpec, SpecError};
use serde::{Deserialize, Serialize};
use tracepoint_core::channel::Policy;

/// The process that drains the rings of a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum DrainedBy {
    /// Each process drains its own rings into the session's sinks.
    #[default]
    Process,
    /// Another process, through the ring files: a `Recorder`. The session has no sinks, and its channels use the policy
    /// `discard` or `wait`.
    #[serde(rename = "outside")]
    Recorder,
}

impl DrainedBy {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde requires this signature")]
    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Checks that the rest of the session is compatible.
    pub(super) fn check(self, spec: &SessionSpec) -> Result<(), SpecError> {
        if self == Self::Process {
            return Ok(());
        }
        if !spec.sinks.is_empty() {
            return Err(SpecError::invalid(
                "a session that another process drains has no sinks of its own; remove them",
            ));
        }
        match spec.all_channels().find(|channel| channel.policy == Policy::Overwrite.name()) {
            Some(channel) => Err(channel.error("rings that another process drains need the policy `discard` or `wait`; `tracectl create NAME --policy overwrite` has flight recorders")),
            None => Ok(()),
        }
    }
}
