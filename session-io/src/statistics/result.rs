//! The results of a statistic.

use serde::Serialize;
use tracepoint_probes::Snapshot;
use tracepoint_session_spec::Rule;

/// A statistic of a rule, and its results at one time.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct StatisticResult {
    /// The rule.
    pub rule: Rule,
    /// The event; for a latency, the one that ends it.
    pub event: String,
    /// True if the values are nanoseconds.
    pub is_duration: bool,
    /// The results.
    #[serde(flatten)]
    pub snapshot: Snapshot,
}

impl StatisticResult {
    /// The results of a statistic of this rule.
    #[doc(hidden)]
    pub fn new(rule: Rule, event: String, is_duration: bool, snapshot: Snapshot) -> Self {
        Self { rule, event, is_duration, snapshot }
    }
}
