//! Notices about a session that are not errors.

use std::fmt;
use std::path::PathBuf;

/// A deviation of a session from what its description suggests.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Notice {
    /// Several declarations share a name and differ in level or fields: each is recorded as a separate event.
    Renamed {
        /// The shared name.
        name: String,
        /// The name that one of them is recorded under.
        recorded: String,
        /// Location of its declaration: file and line.
        declared: String,
    },
    /// The session has no rule that includes events: it records nothing until one is added.
    NoRule,
    /// A rule that excludes events matches none.
    UselessExclusion {
        /// The rule.
        rule: String,
    },
    /// An event is not recorded: it lacks a field that the filter uses, or the field has another type.
    FilterDoesNotFit {
        /// The event.
        event: String,
        /// The mismatch.
        reason: String,
    },
    /// The run directory cannot be used. In a merge with other processes' traces, times may be microseconds off.
    NoSharedClock {
        /// The reason.
        reason: String,
    },
    /// The session's cost exceeded its budget, and its most frequent event was disabled.
    OverBudget {
        /// The event and the cost.
        reason: String,
    },
    /// The path of a sink contains a newline, so it is missing from the list of outputs: recovery after a kill will not find that part of the
    /// events.
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
                write!(f, "{path:?} is not listed for recovery, because it contains a newline: choose another path")
            }
            Self::NoSharedClock { reason } => {
                write!(
                    f,
                    "the clock cannot be shared with other processes, so their times may be microseconds apart: {reason}"
                )
            }
        }
    }
}
