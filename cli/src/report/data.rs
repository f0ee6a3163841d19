//! The data of the page, serialised as JSON. Times are nanoseconds since the first event; lists are in their initial display order.

use super::text::cut;
use crate::counts::Counts;
use crate::statistics::PERCENTILES;
use serde::Serialize;
use tracepoint_probes::snapshot::{Bucket, Distribution, Number};

#[derive(Debug, Default, Serialize)]
pub(super) struct Data {
    pub(super) version: &'static str,
    pub(super) paths: Vec<String>,
    /// The options that select events; empty without any.
    pub(super) selection: String,
    /// The time of the first event in nanoseconds since the epoch, as text: it exceeds the exact integers of JavaScript.
    pub(super) begin_ns: String,
    pub(super) length_ns: u64,
    pub(super) count: u64,
    pub(super) processes: Vec<Process>,
    pub(super) tracks: Vec<Track>,
    pub(super) kinds: Vec<Kind>,
    pub(super) further_kinds: u64,
    pub(super) histograms: Vec<Histogram>,
    /// Number of numeric fields without a histogram, because there are too many.
    pub(super) further_fields: u64,
    pub(super) names: Vec<String>,
    pub(super) spans: Spans,
    pub(super) states: States,
    pub(super) events: Events,
    pub(super) losses: Losses,
    pub(super) account: Option<Accounts>,
    pub(super) damage: Vec<String>,
}

#[derive(Debug, Default, Serialize)]
pub(super) struct Process {
    pub(super) name: String,
    pub(super) pid: Option<u64>,
    pub(super) host: Option<String>,
    pub(super) count: u64,
}

/// The events of a thread.
#[derive(Debug, Default, Serialize)]
pub(super) struct Track {
    /// The index of its process.
    pub(super) process: usize,
    pub(super) name: String,
    pub(super) count: u64,
    /// Event counts in equal slices of the time.
    pub(super) density: Vec<u64>,
}

/// A tracepoint.
#[derive(Debug, Default, Serialize)]
pub(super) struct Kind {
    pub(super) name: String,
    pub(super) count: u64,
    /// Event counts in equal slices of the time.
    pub(super) history: Vec<u64>,
}

#[derive(Debug, Serialize)]
pub(super) struct Histogram {
    pub(super) event: String,
    pub(super) field: String,
    /// True if the values are nanoseconds.
    pub(super) is_duration: bool,
    pub(super) count: u64,
    pub(super) min: Option<Figure>,
    pub(super) mean: Option<f64>,
    pub(super) max: Option<Figure>,
    /// Percentage and value.
    pub(super) percentiles: Vec<(f64, Option<Figure>)>,
    pub(super) bins: Vec<Bucket>,
}

/// A value. Integers beyond 2^53 are sent as text, because the script cannot represent them.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Figure {
    Number(Number),
    Text(String),
}

impl From<Number> for Figure {
    fn from(number: Number) -> Self {
        match number {
            Number::Integer(integer) if integer >= 1 << 53 => Self::Text(integer.to_string()),
            number => Self::Number(number),
        }
    }
}

impl Histogram {
    /// Maximum number of histogram bars.
    const BARS: usize = 64;

    pub(super) fn new(event: &str, field: &str, is_duration: bool, values: &Distribution) -> Self {
        let at = |percent| values.number(percent).map(Figure::from);
        Self {
            event: event.to_owned(),
            field: cut(field),
            is_duration,
            count: values.count(),
            min: at(0.0),
            mean: values.mean(),
            max: at(100.0),
            percentiles: PERCENTILES.map(|percent| (percent, at(percent))).into(),
            bins: values.bins(Self::BARS),
        }
    }
}

/// A span in the page: its track, the index of its name, its begin, its duration, and its fields; `open` if it has no end.
#[derive(Debug, Serialize)]
pub(super) struct SpanRow {
    pub(super) track: usize,
    pub(super) name: usize,
    pub(super) at: u64,
    pub(super) length: u64,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) open: bool,
    pub(super) text: String,
    /// The causes in its time, and their times.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) division: Vec<(usize, u64)>,
    /// Its longest kinds of waits.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) waits: Vec<WaitRow>,
}

/// A kind of waits in a span: the cause, the description, the number of waits, and their time.
#[derive(Debug, Serialize)]
pub(super) struct WaitRow(pub(super) usize, pub(super) usize, pub(super) u64, pub(super) u64);

/// A state of a thread: its track, its cause, its begin, its duration, and its description, if it has one.
#[derive(Debug, Serialize)]
pub(super) struct StateRow(
    pub(super) usize,
    pub(super) usize,
    pub(super) u64,
    pub(super) u64,
    #[serde(skip_serializing_if = "Option::is_none")] pub(super) Option<usize>,
);

#[derive(Debug, Default, Serialize)]
pub(super) struct States {
    /// The names of the causes.
    pub(super) causes: Vec<&'static str>,
    pub(super) rows: Vec<StateRow>,
    /// The descriptions of states and of waits.
    pub(super) texts: Vec<String>,
    pub(super) all: u64,
    /// The number of threads whose states are left out, because they have no track of their own.
    pub(super) without_track: usize,
}

#[derive(Debug, Default, Serialize)]
pub(super) struct Spans {
    pub(super) rows: Vec<SpanRow>,
    pub(super) all: u64,
    /// Span ends without a beginning, and beginnings that exceeded the limit.
    pub(super) unmatched: u64,
    pub(super) unpaired: u64,
}

#[derive(Debug, Serialize)]
pub(super) struct EventRow {
    pub(super) track: usize,
    pub(super) name: usize,
    pub(super) at: u64,
    pub(super) text: String,
}

#[derive(Debug, Default, Serialize)]
pub(super) struct Events {
    pub(super) rows: Vec<EventRow>,
    pub(super) all: u64,
}

#[derive(Debug, Serialize)]
pub(super) struct LossRow {
    /// The track of the stream's first event; none if the stream has no event.
    pub(super) track: Option<usize>,
    pub(super) from: u64,
    pub(super) to: u64,
    /// Number of lost events, as far as known.
    pub(super) events: Option<u64>,
    pub(super) text: String,
}

#[derive(Debug, Default, Serialize)]
pub(super) struct Losses {
    pub(super) rows: Vec<LossRow>,
    /// Number of losses not in `rows`, which has the largest.
    pub(super) further: u64,
    pub(super) lost: u64,
    /// True if more events are missing, in unknown number.
    pub(super) lost_more: bool,
}

/// The tracer's own counts, of all events of all traces.
#[derive(Debug, Default, Serialize)]
pub(super) struct Accounts {
    #[serde(flatten)]
    pub(super) counts: Counts,
    pub(super) checks: usize,
    /// Number of failed comparisons, followed by the first of them.
    pub(super) failed: usize,
    pub(super) failures: Vec<String>,
}
