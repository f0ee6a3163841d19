//! The description of a statistic, shared by code, sessions and `tracectl`.

use serde::Serialize;
use std::fmt;

/// Maximum number of values that [`Measure::Last`] and [`Measure::Top`] keep.
pub const MAX_KEPT: usize = 4096;
/// Maximum number of groups.
pub const MAX_GROUPS: usize = 65_536;
/// Default number of groups.
pub const DEFAULT_GROUPS: usize = 100;
/// Maximum number of operations of a latency that are in flight at the same time.
pub const MAX_IN_FLIGHT: usize = 4096;

/// The quantity computed from events.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Measure {
    /// The number of events.
    Count,
    /// The distribution of a numeric field.
    Histogram {
        /// The field.
        field: String,
    },
    /// The distribution of the time from an event to the next one with an equal key.
    Latency {
        /// `provider:name` of the event that begins an operation.
        begin: String,
        /// `provider:name` of the event that ends it.
        end: String,
        /// The field of both events that identifies the operation; `None`: the thread.
        by: Option<String>,
    },
    /// The number of events in each of the last 60 seconds.
    Rate,
    /// The last values of a field.
    Last {
        /// The field.
        field: String,
        /// Number of values, at most [`MAX_KEPT`].
        count: usize,
    },
    /// The most frequent values of a field.
    Top {
        /// The field.
        field: String,
        /// Number of values, at most [`MAX_KEPT`].
        count: usize,
    },
}

impl Measure {
    /// The latency of a span: the distribution of its durations.
    pub fn span(name: &str) -> Self {
        Self::Latency { begin: format!("{name}_begin"), end: format!("{name}_end"), by: Some("span_id".to_owned()) }
    }
}

/// A measure and the fields that group it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct StatisticSpec {
    pub(crate) measure: Measure,
    pub(crate) by: Vec<String>,
    pub(crate) max_groups: usize,
}

impl StatisticSpec {
    /// A statistic without groups.
    pub fn new(measure: Measure) -> Self {
        Self { measure, by: Vec::new(), max_groups: DEFAULT_GROUPS }
    }

    /// Groups events by the values of one or two fields. Supported by count, histogram and latency. A latency is grouped by fields of its end event.
    #[must_use]
    pub fn by<S: Into<String>>(mut self, fields: impl IntoIterator<Item = S>) -> Self {
        self.by = fields.into_iter().map(Into::into).collect();
        self
    }

    /// The maximum number of groups; the default is 100. Events with further keys are counted together in the overflow row.
    #[must_use]
    pub fn max_groups(mut self, groups: usize) -> Self {
        self.max_groups = groups;
        self
    }

    /// The quantity computed.
    pub fn measure(&self) -> &Measure {
        &self.measure
    }

    /// Returns whether it is the time between two events.
    pub fn is_latency(&self) -> bool {
        matches!(self.measure, Measure::Latency { .. })
    }

    /// Returns whether it uses the times of events.
    pub fn needs_time(&self) -> bool {
        matches!(self.measure, Measure::Latency { .. } | Measure::Rate | Measure::Last { .. })
    }

    /// The fields that group the events.
    pub fn group_fields(&self) -> &[String] {
        &self.by
    }

    pub(crate) fn check(&self) -> Result<(), StatisticError> {
        let refuse = |why: &str| Err(StatisticError::Unsupported { what: self.to_string(), why: why.to_owned() });
        match &self.measure {
            Measure::Rate | Measure::Last { .. } | Measure::Top { .. } if !self.by.is_empty() => {
                refuse("only count, hist and latency have groups")
            }
            Measure::Last { count, .. } | Measure::Top { count, .. } if !(1..=MAX_KEPT).contains(count) => {
                refuse("1 to 4096 values can be kept")
            }
            _ if self.by.len() > 2 => refuse("at most two fields can group events"),
            _ if !self.by.is_empty() && !(1..=MAX_GROUPS).contains(&self.max_groups) => {
                refuse("there can be 1 to 65536 groups")
            }
            _ => Ok(()),
        }
    }
}

impl fmt::Display for StatisticSpec {
    /// Writes the statistic in the notation of session rules: `hist(size) by route`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.measure {
            Measure::Count => write!(f, "count")?,
            Measure::Histogram { field } => write!(f, "hist({field})")?,
            Measure::Latency { begin, end, by } => {
                write!(f, "latency({begin}, {end} by {})", by.as_deref().unwrap_or("thread"))?;
            }
            Measure::Rate => write!(f, "rate")?,
            Measure::Last { field, count } => write!(f, "last({field}, {count})")?,
            Measure::Top { field, count } => write!(f, "top({field}, {count})")?,
        }
        if !self.by.is_empty() {
            write!(f, " by {}", self.by.join(", "))?;
            if self.max_groups != DEFAULT_GROUPS {
                write!(f, " max {}", self.max_groups)?;
            }
        }
        Ok(())
    }
}

/// An error in the description or the start of a statistic.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StatisticError {
    /// No tracepoint has this name.
    #[error(transparent)]
    NoEvent(#[from] tracepoint_core::TracepointNotFound),
    /// The tracepoint is a bare hook without fields.
    #[error("{0} has no fields: give it a field block in `define_trace!`")]
    NoFields(String),
    /// The event has no such field.
    #[error("{event} has no field `{field}`; its fields: {}", fields.join(", "))]
    NoField {
        /// `provider:name`.
        event: String,
        /// The field that was requested.
        field: String,
        /// The fields of the event.
        fields: Vec<String>,
    },
    /// None of several events has the name given for an event of a latency.
    #[error("no selected event is called `{event}`{}", suggestion(nearest))]
    NoEventAnywhere {
        /// `provider:name`.
        event: String,
        /// The most similar names; may be empty.
        nearest: Vec<String>,
    },
    /// None of several events has the field.
    #[error("no selected event has a field `{field}`{}", suggestion(nearest))]
    NoFieldAnywhere {
        /// The field that was requested.
        field: String,
        /// The most similar names of fields; may be empty.
        nearest: Vec<String>,
    },
    /// The field has an unsuitable type.
    #[error("the field `{field}` of {event} is not {wanted}")]
    FieldType {
        /// `provider:name`.
        event: String,
        /// The field.
        field: String,
        /// The required type.
        wanted: &'static str,
    },
    /// The combination is not supported, or the text cannot be parsed.
    #[error("`{what}`: {why}")]
    Unsupported {
        /// The statistic.
        what: String,
        /// The reason.
        why: String,
    },
    /// The memory is smaller than the statistic, or not zero.
    #[error("the memory of the statistic is too small, or in use")]
    Memory,
    /// The sites cannot be switched on.
    #[error(transparent)]
    Switch(#[from] tracepoint_core::SiteSwitchError),
}

fn suggestion(nearest: &[String]) -> String {
    if nearest.is_empty() { String::new() } else { format!("; did you mean {}?", nearest.join(" or ")) }
}
