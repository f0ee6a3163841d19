//! The statistics of rules, as written in the key `statistic` and in `--statistic`.

use crate::from_text::try_from_text;
use std::fmt;
use std::num::NonZeroU64;
use std::str::FromStr;
use tracepoint_probes::{StatisticError, StatisticSpec};

/// A statistic or a sample of the events of a rule, instead of recording each event.
///
/// ```
/// use tracepoint_session_spec::RuleStatistic;
///
/// let statistic: RuleStatistic = "hist( size ) by route".parse()?;
/// assert_eq!(statistic.to_string(), "hist(size) by route");
/// assert!(matches!("sample(1/100)".parse()?, RuleStatistic::Sample { one_in } if one_in.get() == 100));
/// assert!("sum(size)".parse::<RuleStatistic>().is_err());
/// # Ok::<(), tracepoint_session_spec::RuleStatisticError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RuleStatistic {
    /// `count`, `hist(size) by route`, `latency(BEGIN, END by FIELD)`, `rate`, `last(FIELD, N)`, `top(FIELD, N)`: computed by the threads
    /// that fire the events, separately for each event of the rule; a latency combines its two events.
    Compute(StatisticSpec),
    /// `sample(1/N)`: records one in N of the events that pass the filter, and counts the others as suppressed.
    Sample {
        /// N, counted over all threads and events of the rule in a process.
        one_in: NonZeroU64,
    },
}

/// The text is not a statistic of a rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RuleStatisticError {
    /// It is not a statistic.
    #[error(
        "{0}; there are `count`, `rate`, `hist(FIELD)`, `latency(BEGIN, END by FIELD)`, `last(FIELD, N)`, `top(FIELD, N)`, the first, \
         third and fourth with ` by FIELD`, and `sample(1/N)`"
    )]
    Statistic(#[source] StatisticError),
    /// It is not a sample.
    #[error(
        "`{0}`: expected for example `sample(1/100)`, which records one in 100 events; `limit` records so many in a second"
    )]
    Sample(String),
}

impl FromStr for RuleStatistic {
    type Err = RuleStatisticError;

    fn from_str(text: &str) -> Result<Self, RuleStatisticError> {
        let Some(sample) = text.trim().strip_prefix("sample") else {
            return text.parse().map(Self::Compute).map_err(RuleStatisticError::Statistic);
        };
        let argument = sample.trim().strip_prefix('(').and_then(|rest| rest.strip_suffix(')'));
        let one_in =
            argument.and_then(|ratio| ratio.trim().strip_prefix('1')?.trim().strip_prefix('/')?.trim().parse().ok());
        one_in.map(|one_in| Self::Sample { one_in }).ok_or_else(|| RuleStatisticError::Sample(text.to_owned()))
    }
}

try_from_text!(RuleStatistic, RuleStatisticError);

impl From<StatisticSpec> for RuleStatistic {
    fn from(spec: StatisticSpec) -> Self {
        Self::Compute(spec)
    }
}

impl fmt::Display for RuleStatistic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Compute(spec) => spec.fmt(f),
            Self::Sample { one_in } => write!(f, "sample(1/{one_in})"),
        }
    }
}
