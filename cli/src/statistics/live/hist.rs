//! `tracectl hist` of running programs.

use super::screen::Screen;
use super::stat::over_events;
use super::{Form, View};
use crate::failure::Failure;
use crate::output;
use crate::statistics::text::write;
use serde::Serialize;
use std::io::Write;
use tracepoint_control::SessionStatistics;
use tracepoint_probes::snapshot::Results;
use tracepoint_probes::{Measure, Snapshot, StatisticSpec};

/// The distributions of a session.
pub(crate) struct HistView {
    form: Form,
    /// Of a named session, each of its distributions; those of one of our own are those of all events together.
    is_named: bool,
    /// Of a named session only those of this field or latency.
    only: Option<Measure>,
    screen: Screen,
}

/// One distribution at one time.
#[derive(Serialize)]
struct Object<'a> {
    time: u64,
    event: &'a str,
    #[serde(flatten)]
    snapshot: &'a Snapshot,
}

impl HistView {
    pub(crate) fn new(form: Form, is_named: bool, only: Option<Measure>) -> Self {
        Self { form, is_named, only, screen: Screen::new() }
    }

    fn is_shown(&self, snapshot: &Snapshot) -> bool {
        let spec = snapshot.statistic.parse::<StatisticSpec>().ok();
        let is_wanted = self.only.as_ref().is_none_or(|only| spec.is_some_and(|spec| spec.measure() == only));
        is_wanted && matches!(snapshot.results, Results::Histogram(_) | Results::Latency { .. })
    }
}

impl View for HistView {
    fn show(&mut self, statistics: &SessionStatistics) -> Result<(), Failure> {
        let mut merged = statistics.merged();
        merged.retain(|result| !self.is_named || self.is_shown(&result.snapshot));
        if merged.is_empty() && self.is_named {
            let text = "the session computes no such distribution; add it with `tracectl enable NAME -e RULE --statistic 'hist(FIELD)'`";
            return Err(Failure::Refused(text.to_owned()));
        }
        if !self.is_named {
            merged = over_events(merged);
        }
        if self.form == Form::Json {
            for result in &merged {
                output::json(&Object { time: statistics.time, event: &result.event, snapshot: &result.snapshot })?;
            }
            return Ok(());
        }
        let mut text = Vec::new();
        for result in merged {
            if self.is_named {
                writeln!(text, "{}", result.event)?;
            }
            write(&mut text, result.snapshot, None)?;
        }
        self.screen.show(&String::from_utf8_lossy(&text))
    }
}
