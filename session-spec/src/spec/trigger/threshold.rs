//! The text of a condition on a statistic: `p99 of hist(size) > 5ms for 1s`.
//!
//! ```text
//!   threshold = aggregate "of" statistic ( ">" | "<" ) value [ "for" time ]
//!   aggregate = "count" | "rate" | "min" | "mean" | "max" | "p" number
//!   value     = number [ unit ]                                            a unit of time, as in filters: a multiple of a nanosecond
//! ```

use crate::filter::split_unit;
use crate::from_text::try_from_text;
use crate::spec::{RuleStatistic, RuleStatisticError};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;
use tracepoint_probes::{Measure, StatisticSpec};

/// Maximum time for which it has to hold.
const MAX_HOLD: Duration = Duration::from_secs(3600);

/// The quantity that is compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Aggregate {
    /// All events since the statistic began.
    Count,
    /// The events of the last second.
    Rate,
    /// The smallest value.
    Min,
    /// The mean of all values.
    Mean,
    /// The largest value.
    Max,
    /// The value below which this percentage of the values lies.
    Percentile(f64),
}

/// A statistic, and a value to compare it with.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Threshold {
    /// As given.
    text: String,
    /// The compared quantity of the statistic.
    pub aggregate: Aggregate,
    /// The statistic.
    pub statistic: StatisticSpec,
    pub(crate) is_above: bool,
    pub(crate) value: f64,
    /// Time for which it has to hold.
    pub hold: Duration,
}

/// Compares the texts, of which the rest is made.
impl PartialEq for Threshold {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Threshold {}

impl fmt::Display for Threshold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl From<Threshold> for String {
    fn from(threshold: Threshold) -> Self {
        threshold.text
    }
}

impl Threshold {
    /// Returns whether the condition holds for this value.
    pub fn holds(&self, value: f64) -> bool {
        if self.is_above { value > self.value } else { value < self.value }
    }
}

/// The text is not a threshold.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ThresholdError {
    /// Its statistic cannot be parsed.
    #[error(transparent)]
    Statistic(#[from] RuleStatisticError),
    /// Another part is invalid.
    #[error("`{text}`: {reason}")]
    Invalid {
        /// The threshold.
        text: String,
        /// The problem.
        reason: String,
    },
}

impl FromStr for Threshold {
    type Err = ThresholdError;

    fn from_str(text: &str) -> Result<Self, ThresholdError> {
        let invalid = |reason: String| ThresholdError::Invalid { text: text.to_owned(), reason };
        let form =
            || invalid("expected for example `p99 of hist(size) > 4096` or `rate of count > 1000 for 5s`".to_owned());
        let (aggregate, rest) = text.split_once(" of ").ok_or_else(form)?;
        let at = rest.rfind(['>', '<']).ok_or_else(form)?;
        let (statistic, limit) = (rest[..at].trim(), rest[at + 1..].trim());
        let (value, hold) = limit.split_once(" for ").unwrap_or((limit, "0s"));
        let hold = humantime::parse_duration(hold.trim()).map_err(|error| invalid(format!("`{hold}`: {error}")))?;
        if hold > MAX_HOLD {
            return Err(invalid("it can have to hold for an hour at most".to_owned()));
        }
        let statistic = match statistic.parse()? {
            RuleStatistic::Compute(spec) => spec,
            RuleStatistic::Sample { .. } => return Err(invalid("a sample has no value".to_owned())),
        };
        let aggregate = aggregate_of(aggregate.trim()).ok_or_else(|| {
            invalid(
                "there are `count`, `rate`, `min`, `mean`, `max`, and percentiles such as `p99` and `p99.9`".to_owned(),
            )
        })?;
        let is_counted = matches!(statistic.measure(), Measure::Count | Measure::Rate);
        let is_distribution = matches!(statistic.measure(), Measure::Histogram { .. } | Measure::Latency { .. });
        match aggregate {
            Aggregate::Count | Aggregate::Rate if is_counted || is_distribution => {}
            Aggregate::Count | Aggregate::Rate => return Err(invalid(format!("`{statistic}` has no such value"))),
            _ if is_distribution => {}
            _ => {
                return Err(invalid(format!(
                    "`{statistic}` has no values; use `hist(FIELD)` or a latency, or `count` and `rate`"
                )));
            }
        }
        let is_above = rest.as_bytes()[at] == b'>';
        let value = number(value.trim()).ok_or_else(form)?;
        Ok(Self { text: text.to_owned(), aggregate, statistic, is_above, value, hold })
    }
}

try_from_text!(Threshold, ThresholdError);

fn aggregate_of(text: &str) -> Option<Aggregate> {
    Some(match text {
        "count" => Aggregate::Count,
        "rate" => Aggregate::Rate,
        "min" => Aggregate::Min,
        "mean" => Aggregate::Mean,
        "max" => Aggregate::Max,
        percentile => {
            let percent: f64 = percentile.strip_prefix('p')?.parse().ok()?;
            (percent > 0.0 && percent <= 100.0).then_some(Aggregate::Percentile(percent))?
        }
    })
}

/// Parses a number, in nanoseconds if it has a unit of time.
#[expect(clippy::cast_precision_loss, reason = "the units are below 2^53 ns")]
fn number(text: &str) -> Option<f64> {
    let (digits, unit) = split_unit(text).unwrap_or((text, 1));
    let number: f64 = digits.trim_end().replace('_', "").parse().ok()?;
    number.is_finite().then_some(number * unit as f64)
}

impl fmt::Display for Aggregate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count => f.write_str("count"),
            Self::Rate => f.write_str("rate"),
            Self::Min => f.write_str("min"),
            Self::Mean => f.write_str("mean"),
            Self::Max => f.write_str("max"),
            Self::Percentile(percent) => write!(f, "p{percent}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thresholds_are_read() -> Result<(), ThresholdError> {
        for (text, aggregate, value, hold) in [
            ("p99 of hist(size) > 5ms for 1s", Aggregate::Percentile(99.0), 5e6, 1000),
            ("p99.9 of latency(a:b, a:c by id) by route > 2us", Aggregate::Percentile(99.9), 2e3, 0),
            ("rate of count by route < 10 for 1m", Aggregate::Rate, 10.0, 60_000),
            ("count of hist(size)>1_000", Aggregate::Count, 1000.0, 0),
            ("p50 of hist(took) > 1.5 min", Aggregate::Percentile(50.0), 9e10, 0),
            ("p50 of hist(took) > 3\u{b5}s", Aggregate::Percentile(50.0), 3e3, 0),
            ("mean of hist(temperature) < -0.5", Aggregate::Mean, -0.5, 0),
        ] {
            let read: Threshold = text.parse()?;
            assert_eq!((read.aggregate, read.value, read.hold.as_millis()), (aggregate, value, hold), "{text}");
            assert_eq!(read.is_above, text.contains('>'), "{text}");
        }
        Ok(())
    }

    #[test]
    fn what_is_wrong_is_told() {
        for (text, part) in [
            ("", "expected for example"),
            ("hist(size) > 5", "expected for example"),
            ("p99 of hist(size)", "expected for example"),
            ("p99 of hist(size) > many", "expected for example"),
            ("p101 of hist(size) > 5", "percentiles"),
            ("sum of hist(size) > 5", "percentiles"),
            ("p99 of count > 5", "has no values"),
            ("rate of top(size) > 5", "has no such value"),
            ("p99 of sum(size) > 5", "there are `count`"),
            ("p99 of hist(size) > 5 for ever", "ever"),
            ("p99 of hist(size) > 5 for 2h", "an hour at most"),
        ] {
            let error = text.parse::<Threshold>().expect_err(text).to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
