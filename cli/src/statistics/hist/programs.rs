//! Distributions in running programs, and distributions as metrics.

use super::Hist;
use crate::failure::{Failure, VerbResult};
use crate::message;
use crate::output;
use crate::statistics::live::heat_map::{LiveMap, MapOutput};
use crate::statistics::live::hist::{HistView, only_one};
use crate::statistics::live::metrics::{MetricsView, Scope};
use crate::statistics::live::{Form, Target, View};
use crate::statistics::picture::draw;
use crate::statistics::prometheus::{self, Source};
use std::io::Write;
use std::path::Path;
use tracepoint_probes::{Measure, Snapshot, StatisticSpec};
use tracepoint_session_io::statistics::SessionStatistics;

impl Hist {
    pub(super) fn run_live(&self, target: Target, spec: Option<StatisticSpec>) -> VerbResult {
        if self.times.is_given() {
            let text = "`--since` and `--until` are for recorded traces: leave the option out";
            return Err(Failure::Usage(text.to_owned()));
        }
        let is_named = matches!(target, Target::Session(_));
        let form = if self.json { Form::Json } else { Form::Text };
        let only = spec.as_ref().map(|spec| spec.measure().clone());
        let spec = spec.unwrap_or_else(|| StatisticSpec::new(Measure::Count));
        if self.prometheus {
            let scope = if is_named { Scope::Distributions(only) } else { Scope::Whole };
            return self.live.run(target, &spec, &mut MetricsView(scope));
        }
        if self.heat_map {
            let output = match &self.output {
                Some(file) => MapOutput::Picture(file),
                None if self.json => MapOutput::Json,
                None => MapOutput::Text,
            };
            let interval = self.live.programs.interval;
            return self.live.run(target, &spec, &mut LiveMap::new(output, only, interval, self.columns()));
        }
        if let Some(file) = &self.output {
            return self.live.run(target, &spec, &mut LivePicture { file, only });
        }
        self.live.run(target, &spec, &mut HistView::new(form, is_named, only))
    }

    pub(super) fn write_metrics(&self, snapshot: &Snapshot, lost: u64) -> Result<(), Failure> {
        let (statistic, results) = (&snapshot.statistic, &snapshot.results);
        let fields = if self.by.is_empty() { prometheus::fields_of(statistic) } else { self.by.clone() };
        let source = Source { event: "", statistic, fields, filter: None, results };
        let metrics = prometheus::metrics(&[source], Some(lost));
        Ok(write!(output::raw(), "{}", metrics.into_text())?)
    }
}

/// Writes a picture of running programs, and rewrites it at each interval.
struct LivePicture<'a> {
    file: &'a Path,
    only: Option<Measure>,
}

impl View for LivePicture<'_> {
    fn show(&mut self, statistics: &SessionStatistics) -> Result<(), Failure> {
        let programs = message::counted(statistics.processes.len() as u64, "program");
        let shown = only_one(statistics, self.only.as_ref())?;
        draw(shown.snapshot, shown.is_duration, None, &programs, self.file)
    }
}
