//! What is wrong with a rule.

use crate::filter::FilterError;
use crate::limit::LimitError;

/// A rule that cannot be used.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[error("rule `{rule}`: {problem}")]
#[non_exhaustive]
pub struct RuleError {
    /// The rule's pattern, as far as there is one.
    pub rule: String,
    /// What is wrong with it.
    #[source]
    pub problem: RuleProblem,
}

/// What is wrong with a rule, and what was expected.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum RuleProblem {
    /// Its pattern cannot be parsed, or it has a key that is not known.
    #[error("{0}")]
    Malformed(String),
    /// Its condition on levels cannot be parsed.
    #[error("the level `{level}` cannot be used: {reason}")]
    Level {
        /// The condition.
        level: String,
        /// What was expected.
        reason: String,
    },
    /// Its filter cannot be parsed, or fits none of the events that the rule matches.
    #[error("the filter cannot be used: {0}")]
    Filter(#[source] Box<FilterError>),
    /// Its limit cannot be parsed, or not be kept.
    #[error(transparent)]
    Limit(LimitError),
    /// It has a limit, and the process has no clock.
    #[error("a limit needs a clock: this process uses `Clock::None`")]
    LimitWithoutClock,
    /// It excludes events, and has a filter or a limit.
    #[error("a rule that excludes events (`!`) takes no filter and no limit")]
    ConditionOnExclusion,
    /// The session does not have its channel.
    #[error("the session has no channel `{channel}`; it has {known}")]
    NoChannel {
        /// The channel.
        channel: String,
        /// The session's channels.
        known: String,
    },
}
