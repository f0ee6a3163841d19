//! Counts in running programs, and counts as metrics.

use super::{EventCounts, Stat};
use crate::failure::{Failure, VerbResult};
use crate::output;
use crate::statistics::listen;
use crate::statistics::live::metrics::{MetricsView, Scope};
use crate::statistics::live::stat::StatView;
use crate::statistics::live::{Form, Target};
use crate::statistics::prometheus::{self, Source};
use std::io::Write;
use std::net::SocketAddr;
use tracepoint_collector::prometheus::Metrics;
use tracepoint_probes::snapshot::Results;

impl Stat {
    pub(super) fn run_live(&self, target: Target) -> VerbResult {
        let is_named = matches!(target, Target::Session(_));
        if is_named && !self.by.is_empty() {
            return Err(Failure::Usage("the rules of a session say how it groups events: leave out `--by`".to_owned()));
        }
        if self.times.is_given() {
            let text = "`--since` and `--until` are for recorded traces: leave the option out";
            return Err(Failure::Usage(text.to_owned()));
        }
        let scope = if is_named || self.by.is_empty() { Scope::Events } else { Scope::Whole };
        if let Some(address) = self.listen {
            return self.live.serve(target, &self.spec(&self.by), address, &scope);
        }
        if self.prometheus {
            return self.live.run(target, &self.spec(&self.by), &mut MetricsView(scope));
        }
        let form = match (self.json, self.csv) {
            (true, _) => Form::Json,
            (_, true) => Form::Csv(self.cells),
            _ => Form::Text,
        };
        self.live.run(target, &self.spec(&self.by), &mut StatView::new(form, is_named, self.by.clone()))
    }

    /// Serves the counts of the traces as metrics.
    pub(super) fn serve(&self, address: SocketAddr) -> VerbResult {
        listen::serve(address, || Ok(self.metrics(&self.count()?)))
    }

    pub(super) fn write_metrics(&self, counted: &EventCounts) -> Result<(), Failure> {
        Ok(write!(output::raw(), "{}", self.metrics(counted).into_text())?)
    }

    fn metrics(&self, counted: &EventCounts) -> Metrics {
        let by_name = ["event".to_owned()];
        let spec = self.spec(if self.by.is_empty() { &by_name } else { &self.by });
        let (statistic, results) = (spec.to_string(), Results::Count(counted.rows.clone()));
        let fields = spec.group_fields().to_vec();
        let source = Source { event: "", statistic: &statistic, fields, filter: None, results: &results };
        prometheus::metrics(&[source], Some(counted.seen.lost))
    }
}
