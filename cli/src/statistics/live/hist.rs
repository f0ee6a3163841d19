//! `tracectl hist` of running programs.

use super::combine::{distinct, over_events};
use super::screen::Screen;
use super::{Form, View};
use crate::failure::Failure;
use crate::output;
use crate::statistics::text::write;
use serde::Serialize;
use std::io::Write;
use tracepoint_probes::snapshot::Results;
use tracepoint_probes::{Measure, Snapshot, StatisticSpec};
use tracepoint_session_io::statistics::{SessionStatistics, StatisticResult};

const NONE: &str =
    "the session computes no such distribution; add it with `tracectl enable NAME -e RULE --statistic 'hist(FIELD)'`";

/// The distributions of a session.
pub(crate) struct HistView {
    form: Form,
    /// True for a named session: each of its distributions is shown. Those of a temporary session are merged over all events.
    is_named: bool,
    /// Restricts a named session to the distributions of this field or latency.
    only: Option<Measure>,
    screen: Screen,
}

/// One distribution at one time.
#[derive(Serialize)]
struct Object<'a> {
    time_ns: i64,
    event: &'a str,
    #[serde(flatten)]
    snapshot: &'a Snapshot,
}

impl HistView {
    pub(crate) fn new(form: Form, is_named: bool, only: Option<Measure>) -> Self {
        Self { form, is_named, only, screen: Screen::new() }
    }
}

/// True for a distribution; if a field or latency is given, only for its distribution.
pub(super) fn is_shown(snapshot: &Snapshot, only: Option<&Measure>) -> bool {
    let spec = snapshot.statistic.parse::<StatisticSpec>().ok();
    let is_wanted = only.is_none_or(|only| spec.is_some_and(|spec| spec.measure() == only));
    is_wanted && matches!(snapshot.results, Results::Histogram(_) | Results::Latency { .. })
}

/// Fails if no distribution is computed, or not the requested one.
pub(super) fn require_distribution(statistics: &SessionStatistics, only: Option<&Measure>) -> Result<(), Failure> {
    if distinct(statistics).iter().any(|result| is_shown(&result.snapshot, only)) {
        return Ok(());
    }
    Err(Failure::Refused(NONE.to_owned()))
}

/// The distribution for a picture, over all events.
///
/// # Errors
///
/// If there is none, or several.
pub(crate) fn only_one(statistics: &SessionStatistics, only: Option<&Measure>) -> Result<StatisticResult, Failure> {
    let mut shown = over_events(distinct(statistics)).into_iter().filter(|result| is_shown(&result.snapshot, only));
    let Some(first) = shown.next() else { return Err(Failure::Refused(NONE.to_owned())) };
    if let Some(further) = shown.next() {
        let [first, further] = [first, further].map(|result| result.snapshot.statistic);
        let text = format!(
            "a picture shows one distribution, and the session computes `{first}` and `{further}`: name one of them"
        );
        return Err(Failure::Refused(text));
    }
    Ok(first)
}

impl View for HistView {
    fn show(&mut self, statistics: &SessionStatistics) -> Result<(), Failure> {
        let mut merged = distinct(statistics);
        merged.retain(|result| !self.is_named || is_shown(&result.snapshot, self.only.as_ref()));
        if merged.is_empty() && self.is_named {
            return Err(Failure::Refused(NONE.to_owned()));
        }
        if !self.is_named {
            merged = over_events(merged);
        }
        if self.form == Form::Json {
            for result in &merged {
                output::json(&Object {
                    time_ns: statistics.time_ns,
                    event: &result.event,
                    snapshot: &result.snapshot,
                })?;
            }
            return Ok(());
        }
        let mut text = Vec::new();
        for result in merged {
            if self.is_named {
                writeln!(text, "{}", output::in_line(&result.event))?;
            }
            write(&mut text, result.snapshot, result.is_duration, None)?;
        }
        self.screen.show(&String::from_utf8_lossy(&text))
    }
}
