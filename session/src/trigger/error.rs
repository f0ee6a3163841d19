//! Errors in watching conditions.

use std::fmt;

/// A condition of a trigger cannot be watched in this process, for this reason.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct WatchError(String);

impl WatchError {
    pub(super) fn new(reason: impl fmt::Display) -> Self {
        Self(reason.to_string())
    }
}

/// The id of a trigger, and the number of events or statistics that it watches (`None` for other conditions), or the reason why it cannot be
/// watched.
pub(crate) type WatchResult = (String, Result<Option<usize>, WatchError>);
