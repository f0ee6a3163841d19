//! The statistics of running programs as metrics for Prometheus.

use super::View;
use super::combine::{distinct, over_events};
use super::hist::require_distribution;
use crate::failure::Failure;
use crate::output;
use crate::statistics::prometheus::{self, Source};
use std::io::Write;
use tracepoint_collector::prometheus::Metrics;
use tracepoint_probes::Measure;
use tracepoint_session_io::statistics::{SessionStatistics, StatisticResult};
use tracepoint_session_spec::filter::Expression;

/// The part of a session's statistics that is exported.
#[derive(Clone, Debug)]
pub(crate) enum Scope {
    /// Counts of each event.
    Events,
    /// Counts over all events.
    Whole,
    /// Distributions of each event; with a value, only those of this field or latency.
    Distributions(Option<Measure>),
}

impl Scope {
    pub(crate) fn metrics(&self, statistics: &SessionStatistics) -> Metrics {
        let mut results = distinct(statistics);
        match self {
            Self::Events => {}
            Self::Whole => results = over_events(results),
            Self::Distributions(only) => {
                results.retain(|result| super::hist::is_shown(&result.snapshot, only.as_ref()));
            }
        }
        prometheus::metrics(&results.iter().map(|result| self.source(result)).collect::<Vec<_>>(), None)
    }

    fn source<'a>(&self, result: &'a StatisticResult) -> Source<'a> {
        let is_whole = matches!(self, Self::Whole);
        Source {
            event: if is_whole { "" } else { &result.event },
            statistic: &result.snapshot.statistic,
            fields: prometheus::fields_of(&result.snapshot.statistic),
            filter: result.rule.filter.as_ref().map(Expression::text).filter(|_| !is_whole),
            results: &result.snapshot.results,
        }
    }
}

pub(crate) struct MetricsView(pub(crate) Scope);

impl View for MetricsView {
    fn show(&mut self, statistics: &SessionStatistics) -> Result<(), Failure> {
        if let Scope::Distributions(only) = &self.0 {
            require_distribution(statistics, only.as_ref())?;
        }
        let mut out = output::raw();
        write!(out, "{}", self.0.metrics(statistics).into_text())?;
        Ok(out.flush()?)
    }

    fn is_shown_once(&self) -> bool {
        true
    }
}
