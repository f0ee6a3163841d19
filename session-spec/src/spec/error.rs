//! Errors in the description of a session.

use super::RuleError;
use std::fmt;

/// The description of a session is invalid.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum SpecError {
    /// It cannot be parsed, or contains unknown keys or values.
    #[error("it cannot be parsed: {0}")]
    Malformed(String),
    /// It contains invalid or inconsistent values.
    #[error("{0}")]
    Invalid(String),
    /// It was written by a newer version.
    #[error("it has version {version}, and this program supports versions up to {known}; use a newer program")]
    Newer {
        /// Its version.
        version: i64,
        /// The newest supported version.
        known: i64,
    },
    /// A rule is invalid.
    #[error(transparent)]
    Rule(RuleError),
    /// It has no sink, and the policy of one of its channels does not keep the newest events.
    #[error(
        "channel `{channel}`: without a sink the newest events must stay in the rings, and the policy `{policy}` does not keep them; \
         give the session a sink (`-o DIR`; in code `.sink(CtfSink::create(dir)?)`), or the channel the policy `overwrite`"
    )]
    NoSink {
        /// The channel.
        channel: String,
        /// Its policy.
        policy: String,
    },
    /// There are too many rules.
    #[error("a session has at most {0} rules; use patterns with `*` that match more events each")]
    TooManyRules(usize),
}

impl SpecError {
    pub(super) fn malformed(reason: impl fmt::Display) -> Self {
        Self::Malformed(reason.to_string().trim_end().to_owned())
    }

    pub(super) fn invalid(reason: impl Into<String>) -> Self {
        Self::Invalid(reason.into())
    }
}
