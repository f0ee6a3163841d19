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
    /// It says something that cannot be, or that does not fit together.
    #[error("{reason}")]
    Invalid {
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
    /// It has no sink, and a channel that does not keep the newest events in its rings.
    #[error(
        "channel `{channel}`: without a sink the newest events have to stay in the rings, which the policy `{policy}` does not do; \
         give the session a sink (`-o DIR`; in code `.sink(CtfSink::create(dir)?)`), or the channel the policy `overwrite`"
    )]
    NoSink {
        /// The channel.
        channel: String,
        /// Its policy.
        policy: String,
    },
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

    pub(super) fn invalid(reason: impl Into<String>) -> Self {
        Self::Invalid { reason: reason.into() }
    }
}
