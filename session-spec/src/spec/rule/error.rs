//! Errors in rules.

use super::{LevelError, NameRuleError, RuleStatisticError};
use crate::filter::FilterError;
use crate::limit::LimitError;
use std::convert::Infallible;

/// A rule that cannot be used.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[error("rule `{rule}`: {problem}")]
#[non_exhaustive]
pub struct RuleError {
    /// The rule's pattern; empty if it has none.
    pub rule: String,
    /// The problem.
    #[source]
    pub problem: RuleProblem,
}

impl RuleError {
    /// A problem with the rule of this pattern.
    #[doc(hidden)]
    pub fn new(rule: impl Into<String>, problem: RuleProblem) -> Self {
        Self { rule: rule.into(), problem }
    }
}

/// A problem with a rule.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum RuleProblem {
    /// Its pattern for programs cannot be parsed, or it has an unknown key.
    #[error("{0}")]
    Malformed(String),
    /// Its pattern for events cannot be parsed.
    #[error(transparent)]
    Name(#[from] NameRuleError),
    /// Its condition on levels cannot be parsed.
    #[error(transparent)]
    Level(#[from] LevelError),
    /// Its filter cannot be parsed, or fits none of the events that the rule matches.
    #[error("the filter cannot be used: {0}")]
    Filter(#[source] Box<FilterError>),
    /// Its limit is invalid.
    #[error(transparent)]
    Limit(#[from] LimitError),
    /// Its statistic cannot be parsed, conflicts with its other parts, or fits none of the events that the rule matches.
    #[error("the statistic cannot be used: {0}")]
    Statistic(String),
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

impl From<FilterError> for RuleProblem {
    fn from(error: FilterError) -> Self {
        Self::Filter(error.into())
    }
}

impl From<RuleStatisticError> for RuleProblem {
    fn from(error: RuleStatisticError) -> Self {
        Self::Statistic(error.to_string())
    }
}

/// For parts that are given as values in place of texts.
impl From<Infallible> for RuleProblem {
    fn from(error: Infallible) -> Self {
        match error {}
    }
}
