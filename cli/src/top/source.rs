//! The displayed data, and its sources.

use crate::failure::Failure;
use std::time::Duration;
use tracepoint_probes::snapshot::{Distribution, Results};
use tracepoint_reader::text::{Style, TextOptions, TextWriter};
use tracepoint_reader::{Event, Item};

/// Maximum length of an event's history, in slices.
pub(super) const HISTORY: usize = 120;
/// Maximum number of recent events shown, and of the most frequent values.
pub(super) const LAST: usize = 16;
pub(super) const FREQUENT: usize = 20;

/// A consistent view of all events at one time.
#[derive(Clone, Debug, Default)]
pub(super) struct Overview {
    /// The subject of the overview, and its extent.
    pub(super) heading: String,
    pub(super) processes: Vec<ProcessRow>,
    pub(super) events: Vec<EventRow>,
    /// A note on missing data.
    pub(super) note: Option<String>,
}

/// A process.
#[derive(Clone, Debug, Default)]
pub(super) struct ProcessRow {
    pub(super) name: String,
    pub(super) per_second: f64,
    pub(super) is_alive: bool,
}

/// An event.
#[derive(Clone, Debug, Default)]
pub(super) struct EventRow {
    pub(super) name: String,
    /// True if it is counted.
    pub(super) is_on: bool,
    pub(super) count: u64,
    pub(super) per_second: f64,
    /// Counts in the most recent time slices, at most [`HISTORY`]. The slices of all events have equal length.
    pub(super) history: Vec<u64>,
    pub(super) fields: Vec<String>,
}

/// The inspected event, and the inspected field of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Focus {
    pub(super) event: String,
    pub(super) field: Option<String>,
}

/// The values of a focused field.
#[derive(Clone, Debug, Default)]
pub(super) struct Detail {
    pub(super) values: Values,
    /// The most recent events, or values of the field, the newest last, and a heading for them.
    pub(super) last: Vec<String>,
    pub(super) last_title: &'static str,
}

/// The values of a field.
#[derive(Clone, Debug, Default)]
pub(super) enum Values {
    /// Nothing to show yet, or no field.
    #[default]
    None,
    /// Of a duration, the values are nanoseconds.
    Distribution { all: Distribution, is_duration: bool },
    /// The most frequent values, each with its count and the maximum error by which the count is too large.
    Frequent(Vec<(String, u64, u64)>),
}

impl Values {
    /// The results of a field's statistic.
    pub(super) fn of(results: Results, is_duration: bool) -> Self {
        match results {
            Results::Histogram(rows) => rows.all.map_or(Self::None, |all| Self::Distribution { all, is_duration }),
            Results::Top { values } => {
                Self::Frequent(values.into_iter().map(|one| (one.value.to_string(), one.count, one.error)).collect())
            }
            _ => Self::None,
        }
    }
}

/// Events as lines.
pub(super) fn lines<'e>(events: impl IntoIterator<Item = &'e Event>) -> Result<Vec<String>, Failure> {
    let mut text = TextWriter::new(TextOptions::from(Style::Compact));
    let mut lines = Vec::new();
    for event in events {
        text.write_item(&mut lines, &Item::Event(event.clone()))?;
    }
    Ok(String::from_utf8_lossy(&lines).lines().map(str::to_owned).collect())
}

/// Events per second; 0 if no time has passed.
#[expect(clippy::cast_precision_loss, reason = "a rate")]
pub(super) fn per_second(count: u64, seconds: f64) -> f64 {
    if seconds > 0.0 { count as f64 / seconds } else { 0.0 }
}

/// A source of counts.
pub(super) trait Source {
    /// The interval between updates; `None` if nothing changes.
    fn interval(&self) -> Option<Duration>;

    /// The current overview.
    fn overview(&mut self) -> Result<Overview, Failure>;

    /// The values of the field so far. Called for each refresh while the same focus is shown.
    fn detail(&mut self, focus: &Focus) -> Result<Detail, Failure>;

    /// Called when no focus is shown any more.
    fn leave(&mut self) -> Result<(), Failure>;

    /// Switches an event on or off.
    fn switch(&mut self, event: &str, on: bool) -> Result<(), Failure>;
}
