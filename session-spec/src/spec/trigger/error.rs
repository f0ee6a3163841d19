//! Errors in the conditions and actions of triggers.

use super::ThresholdError;
use crate::spec::RuleError;

/// A condition or an action of a trigger is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TriggerPartError {
    /// The rule of the condition `event` is invalid.
    #[error(transparent)]
    Rule(#[from] RuleError),
    /// The threshold of the condition `statistic` is invalid.
    #[error(transparent)]
    Threshold(#[from] ThresholdError),
    /// Another argument is invalid.
    #[error("{0}")]
    Argument(String),
}

impl TriggerPartError {
    pub(super) fn argument(reason: impl Into<String>) -> Self {
        Self::Argument(reason.into())
    }
}
