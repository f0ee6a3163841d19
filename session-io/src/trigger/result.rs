//! The result of an action.

use super::failure::ActionFailure;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use tracepoint_session_spec::TriggerAction;

/// The result of an action.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ActionResult {
    /// Its name: [`TriggerAction::name`].
    pub action: String,
    /// The directory of the snapshot that was taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<PathBuf>,
    /// The program that was started, by its process id in the pid namespace of the process that acted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// The exit status of that program, for example `exit status 0`; `None` while it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
    /// A deviation from the trigger's description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The reason why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The error number that describes the failure best.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub errno: Option<i32>,
}

impl ActionResult {
    /// An action that was done.
    pub(super) fn done(action: &TriggerAction) -> Self {
        Self { action: action.name().to_owned(), ..Self::default() }
    }

    /// An action that failed.
    pub(super) fn failed(action: &TriggerAction, failure: &ActionFailure) -> Self {
        Self { error: Some(failure.reason.clone()), errno: Some(failure.errno), ..Self::done(action) }
    }
}
