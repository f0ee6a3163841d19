//! Who takes the packets of a session out of the rings.

use super::{SessionSpec, SpecError};
use serde::{Deserialize, Serialize};
use tracepoint_core::channel::Policy;

/// Who takes the packets of a session out of the rings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum DrainedBy {
    /// Each process itself, into the sinks of the session.
    #[default]
    Process,
    /// Another process, through the ring files: a [`Recorder`](crate::Recorder). The session has no sinks, and its channels use the policy
    /// `discard`.
    #[serde(rename = "outside")]
    Recorder,
}

impl DrainedBy {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "this is how serde asks")]
    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Whether the rest of a session fits.
    pub(super) fn check(self, spec: &SessionSpec) -> Result<(), SpecError> {
        if self == Self::Process {
            return Ok(());
        }
        if !spec.sinks.is_empty() {
            return Err(SpecError::invalid("a session that is drained from outside has no sinks of its own"));
        }
        match spec.all_channels().find(|channel| channel.policy != Policy::Discard.name()) {
            Some(channel) => Err(channel.refused("rings that are drained from outside have the policy `discard`")),
            None => Ok(()),
        }
    }
}
