//! What is worth knowing about a session, and is no error.

use std::fmt;
use std::path::PathBuf;

/// Something that a session does differently from what its description suggests.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Notice {
    /// Several declarations share a name and differ in level or fields: they are recorded as events of their own.
    Renamed {
        /// The name that they share.
        name: String,
        /// The name under which one of them is recorded.
        recorded: String,
        /// Where it is declared: file and line.
        declared: String,
    },
    /// The session has no rule that includes events: it records nothing until one is added.
    NoRule,
    /// A rule that excludes events matches none.
    UselessExclusion {
        /// The rule.
        rule: String,
    },
    /// An event is not recorded: it lacks a field of the filter, or has it with another type.
    FilterDoesNotFit {
        /// The event.
        event: String,
        /// What does not fit.
        reason: String,
    },
    /// The run directory cannot be used. Times of several processes may be microseconds apart when their traces are merged.
    NoSharedClock {
        /// Why.
        reason: String,
    },
    /// The session has cost more than its budget, and its hottest event was switched off.
    OverBudget {
        /// The event, and what it cost.
        reason: String,
    },
    /// The path of a sink has a line feed in it, and is not listed beside the rings: should the process be killed, nobody knows
    /// that events are there, too.
    OutputNotListed {
        /// The path.
        path: PathBuf,
    },
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Renamed { name, recorded, declared } => {
                write!(f, "{name} of {declared} is recorded as {recorded}: another event of that name has other fields")
            }
            Self::OverBudget { reason } => f.write_str(reason),
            Self::NoRule => f.write_str("no rule includes events: nothing is recorded until one is added"),
            Self::UselessExclusion { rule } => write!(f, "the rule `{rule}` excludes nothing: no event matches it"),
            Self::FilterDoesNotFit { event, reason } => {
                write!(f, "{event} is left out, because the filter does not fit it: {reason}")
            }
            Self::OutputNotListed { path } => {
                let path = path.to_string_lossy();
                write!(f, "{path:?} cannot be listed beside the rings: choose a path without line feeds")
            }
            Self::NoSharedClock { reason } => {
                write!(
                    f,
                    "the clock cannot be shared with other processes, whose times may be microseconds apart: {reason}"
                )
            }
        }
    }
}
