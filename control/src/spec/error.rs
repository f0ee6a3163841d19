//! Why the description of a session will not do.

use super::RuleError;
use std::fmt;

/// The description of a session will not do.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum SpecError {
    /// It is not one, or has something in it that is not known.
    #[error("it cannot be understood: {reason}")]
    Malformed {
        /// What is wrong.
        reason: String,
    },
    /// It was written by a newer version.
    #[error("it has version {version}, and {known} is the newest that is known here; use a newer program")]
    Newer {
        /// Its version.
        version: i64,
        /// The newest that is known.
        known: i64,
    },
    /// A rule is not understood.
    #[error(transparent)]
    Rule(RuleError),
    /// There are too many rules.
    #[error("a session has {most} rules at most; choose more events with each, by `*`")]
    TooManyRules {
        /// How many there may be.
        most: usize,
    },
}

impl SpecError {
    pub(super) fn malformed(reason: impl fmt::Display) -> Self {
        Self::Malformed { reason: reason.to_string().trim_end().to_owned() }
    }
}
