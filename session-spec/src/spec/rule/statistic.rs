//! The statistics of rules, as written in the key `statistic` and in `--statistic`.

use std::fmt;
use std::num::NonZeroU64;
use std::str::FromStr;
use tracepoint_probes::StatisticSpec;

/// A statistic or a sample of the events of a rule, instead of recording each event.
///
/// ```
/// use tracepoint_session_spec::RuleStatistic;
///
/// let statistic: RuleStatistic = "hist( size ) by route".parse()?;
/// assert_eq!(statistic.to_string(), "hist(size) by route");
/// assert!(matches!("sample(1/100)".parse()?, RuleStatistic::Sample { one_in } if one_in.get() == 100));
/// assert!("sum(size)".parse::<RuleStatistic>().is_err());
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
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

impl FromStr for RuleStatistic {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let Some(sample) = text.trim().strip_prefix("sample") else {
            return text.parse().map(Self::Compute).map_err(|error: tracepoint_probes::StatisticError| {
                let known = "there are `count`, `rate`, `hist(FIELD)`, `latency(BEGIN, END by FIELD)`, `last(FIELD, N)`, `top(FIELD, N)`, the first, \
                             third and fourth with ` by FIELD`, and `sample(1/N)`";
                format!("{error}; {known}")
            });
        };
        let argument = sample.trim().strip_prefix('(').and_then(|rest| rest.strip_suffix(')'));
        let one_in =
            argument.and_then(|ratio| ratio.trim().strip_prefix('1')?.trim().strip_prefix('/')?.trim().parse().ok());
        one_in.map(|one_in| Self::Sample { one_in }).ok_or_else(|| {
            format!("`{text}`: expected for example `sample(1/100)`, which records one in 100 events; `limit` records so many in a second")
        })
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
