//! The budget of a session: its maximum cost in a process.

use super::SpecError;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The maximum cost of a session in each process, averaged over about a second. Above it, the most frequent event is disabled there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct BudgetSpec {
    /// Processor time, in percent of one core.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_percent: Option<CpuPercent>,
    /// Bytes of packets in the rings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_per_second: Option<u64>,
    /// A change of this number enables the events that the budget has disabled.
    pub round: u64,
}

impl BudgetSpec {
    /// A budget with these limits; `None` for no limit.
    pub fn new(cpu_percent: Option<CpuPercent>, bytes_per_second: Option<u64>) -> Self {
        Self { cpu_percent, bytes_per_second, round: 0 }
    }

    pub(super) fn check(&self) -> Result<(), SpecError> {
        if self.cpu_percent.is_none() && self.bytes_per_second.is_none() {
            return Err(SpecError::invalid("the budget has no limit: set `cpu_percent` or `bytes_per_second`"));
        }
        if self.bytes_per_second == Some(0) {
            return Err(SpecError::invalid(
                "a budget of 0 bytes would record nothing; leave `bytes_per_second` out or make it larger",
            ));
        }
        if self.bytes_per_second.is_some_and(|bytes| i64::try_from(bytes).is_err())
            || i64::try_from(self.round).is_err()
        {
            return Err(SpecError::invalid("a number of the budget does not fit into 63 bits"));
        }
        Ok(())
    }
}

/// A share of one core's time, in percent: from 0.001 to 100,000.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct CpuPercent {
    thousandths: u32,
}

impl CpuPercent {
    const MAX: f64 = 100_000.0;

    /// The share in ns per second.
    #[doc(hidden)]
    pub fn ns_per_second(self) -> u64 {
        u64::from(self.thousandths) * 10_000
    }
}

/// The text or number is not a [`CpuPercent`].
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CpuPercentError {
    /// The text is not a number with an optional percent sign.
    #[error("expected a share of one core, for example `1%` or `0.5%`")]
    Syntax,
    /// The number is out of range.
    #[error("{0} percent of a core is no valid budget; use 0.001 to 100000")]
    OutOfRange(f64),
}

impl TryFrom<f64> for CpuPercent {
    type Error = CpuPercentError;

    fn try_from(percent: f64) -> Result<Self, Self::Error> {
        let thousandths = (percent * 1000.0).round();
        if !(1.0..=Self::MAX * 1000.0).contains(&thousandths) {
            return Err(CpuPercentError::OutOfRange(percent));
        }
        // An integer between 1 and 10^8.
        #[expect(clippy::cast_sign_loss, reason = "the value is positive")]
        Ok(Self { thousandths: thousandths as u32 })
    }
}

impl From<CpuPercent> for f64 {
    fn from(percent: CpuPercent) -> Self {
        Self::from(percent.thousandths) / 1000.0
    }
}

impl FromStr for CpuPercent {
    type Err = CpuPercentError;

    /// Parses `1%`, `0.5%` or `150%`; the percent sign is optional.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let number = text.strip_suffix('%').unwrap_or(text).trim().parse::<f64>();
        number.map_err(|_| CpuPercentError::Syntax)?.try_into()
    }
}

impl fmt::Display for CpuPercent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} %", f64::from(*self))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percents_are_read() {
        for (text, ns) in [("1%", 10_000_000), ("0.5", 5_000_000), ("0.001 %", 10_000), ("150%", 1_500_000_000)] {
            assert_eq!(text.parse::<CpuPercent>().map(CpuPercent::ns_per_second), Ok(ns), "{text}");
        }
        for text in ["", "%", "x", "-1%", "0", "0.0001%", "NaN", "inf", "1e9%"] {
            assert!(text.parse::<CpuPercent>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_budget_without_limits_is_invalid() {
        assert!(BudgetSpec::default().check().is_err());
        assert!(BudgetSpec::new(None, Some(0)).check().is_err());
        assert!(BudgetSpec::new(None, Some(u64::MAX)).check().is_err());
        assert!(BudgetSpec::new("1%".parse().ok(), None).check().is_ok());
    }
}
