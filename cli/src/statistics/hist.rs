//! `tracectl hist`: distributions of field values, or of the times between two events.

#[cfg_attr(not(target_os = "linux"), path = "hist/no_programs.rs")]
mod programs;

use super::heat_map::{HeatMap, Slice, Slices};
use super::live::LiveArguments;
use super::operands::{self, First};
use super::pass::{Input, Order};
use super::picture::{self, draw};
use super::summary::summaries;
use super::text::write;
use crate::failure::{Failure, VerbResult};
use crate::output;
use crate::selection::{EventSelection, TimeSelection};
use clap::Args;
use serde::Serialize;
use std::path::PathBuf;
use tracepoint_probes::{Measure, Snapshot, StatisticSpec};

/// Shows the distribution of a field or of a latency
///
/// Of recorded traces or of running programs. A latency is the time between two events. Minimum, maximum and mean are exact, and so are percentiles
/// of integers below 1,024; others are accurate to 1.6 %. With --by, or `by` after the statistic, there is a line for each group. In a latency, the
/// first event begins an operation, and the second one with an equal value of the field ends it; without `by`, in the same thread.
/// `latency(shop:request)` is the latency of the span `request`. Traces are read in parallel, except for a latency, a heat map, and more groups than
/// the limit, which need the events in time order.
///
/// Without the path of a trace, running programs compute the distribution until Ctrl-C, and record nothing for it. Further operands and `-e` select
/// the events; without them, all events in the process given by `-p` are used. `-s SESSION` shows the distributions computed by the rules of a
/// session, once unless `--watch` is given.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tracectl hist size /tmp/trace
  tracectl hist -e 'shop:answered' /tmp/trace
  tracectl hist size --by path -e 'shop:answered' /tmp/trace
  tracectl hist 'latency(shop:asked, shop:answered by id)' --by path /tmp/trace
  tracectl hist size --since -10s /tmp/trace
  tracectl hist 'latency(shop:request)' /tmp/trace
  tracectl hist 'latency(shop:asked, shop:answered by id)' --heat-map /tmp/trace
  tracectl hist size -o size.svg /tmp/trace
  tracectl hist size --by path --prometheus /tmp/trace
  tracectl hist size 'shop:answered' --by path
  tracectl hist 'latency(shop:asked, shop:answered by id)' -p 4242
  tracectl hist 'latency(shop:asked, shop:answered by id)' -o latency.svg --once
  tracectl hist size 'shop:answered' --heat-map
  tracectl hist -s numbers
  tracectl hist --json 'latency(db:begin, db:end)' /tmp/trace | jq .all.p99")]
pub(crate) struct Hist {
    /// A field; `latency(BEGIN, END by FIELD)` with the names of two events; or `latency(SPAN)`. May be omitted before the PATH of a trace:
    /// each numeric field of the selected events is then shown
    #[arg(value_name = "FIELD|LATENCY", value_parser = First::parse, required_unless_present = "session")]
    statistic: Option<First>,
    /// A directory with a CTF trace, or with several below it; or a dt file. Several paths are merged. Or events of running programs, as
    /// `provider:name` with `*`, `?` and `[a-z]`
    #[arg(value_name = "PATH|EVENT")]
    paths: Vec<PathBuf>,
    #[command(flatten)]
    selection: EventSelection,
    #[command(flatten)]
    times: TimeSelection,
    /// Group the events by the values of one or two fields; for a latency, fields of the second event
    #[arg(long, help_heading = "Groups", value_name = "FIELD,…", value_delimiter = ',')]
    by: Vec<String>,
    /// The largest number of groups; further values are combined
    #[arg(long, help_heading = "Groups", value_name = "N", default_value_t = 100)]
    groups: usize,
    /// Show the distribution over time: a column for each time slice, and a shade for the number of events. For running programs, a column for
    /// each interval
    #[arg(long, help_heading = "Form of the output", conflicts_with = "by")]
    heat_map: bool,
    /// Write a picture (SVG) to FILE in place of the text: the histogram, one for each of the 12 largest groups, or the heat map. For running
    /// programs, it is rewritten at each interval
    #[arg(short, long, help_heading = "Form of the output", value_name = "FILE", conflicts_with = "json")]
    output: Option<PathBuf>,
    /// Write the distribution as metrics in Prometheus's text format
    #[arg(long, help_heading = "Form of the output", conflicts_with_all = ["json", "output", "heat_map"])]
    prometheus: bool,
    /// Write one JSON object: percentiles and buckets, in total (`all`) or by group (`groups`); with --heat-map, the same for each time slice
    /// with values (`slices`); durations are in nanoseconds. Without FIELD, one object for each field
    #[arg(long, help_heading = "Form of the output")]
    json: bool,
    #[command(flatten)]
    live: LiveArguments,
}

impl Hist {
    pub(crate) fn run(&self) -> VerbResult {
        let (spec, paths) = operands::resolve(self.statistic.as_ref(), &self.paths, self.live.programs.is_given())?;
        let spec = spec.map(|spec| self.grouped(spec));
        if self.heat_map && spec.as_ref().is_some_and(|spec| !spec.group_fields().is_empty()) {
            return Err(Failure::Usage(
                "a heat map shows one distribution: leave out `by`, or select a group by `--filter`".to_owned(),
            ));
        }
        // A latency names its own events.
        let is_latency = spec.as_ref().is_some_and(StatisticSpec::is_latency);
        if let Some(target) = self.live.programs.target(&paths, &self.selection, is_latency)? {
            return self.run_live(target, spec);
        }
        let input = Input { paths: &paths, selection: &self.selection, times: self.times };
        let trace = input.open()?;
        let field = |name: &str| self.grouped(StatisticSpec::new(Measure::Histogram { field: name.to_owned() }));
        let statistics = operands::statistics(input, &trace, spec, field)?;
        if statistics.len() > 1 && (self.heat_map || self.output.is_some() || self.prometheus) {
            let text =
                format!("the selected events have {} fields that are numbers: name the one to show", statistics.len());
            return Err(Failure::Usage(text));
        }
        let (snapshots, map, seen) = if self.heat_map {
            // One thread only: slices are cut in the order of events.
            let slices = |_| {
                let range = trace.range().unwrap_or_default();
                let parts = statistics.iter().flat_map(|statistic| statistic.for_threads(1));
                parts.map(|one| Slices::new(one, range, self.columns())).collect()
            };
            let (slices, seen) = input.pass(&trace, Order::Time, slices)?;
            let slices = slices.into_iter().next().ok_or_else(|| Failure::Refused("no visitor".to_owned()))?;
            (vec![slices.statistic.snapshot()], Some(slices.finish()), seen)
        } else {
            let (snapshots, seen) = summaries(input, &trace, &statistics)?;
            (snapshots, None, seen)
        };
        for (snapshot, statistic) in snapshots.into_iter().zip(&statistics) {
            if self.prometheus {
                self.write_metrics(&snapshot, seen.lost)?;
            } else {
                self.write(&paths, snapshot, statistic.is_duration(), map.as_ref())?;
            }
        }
        Ok(seen.report())
    }

    /// The statistic, grouped as the options say.
    fn grouped(&self, spec: StatisticSpec) -> StatisticSpec {
        let spec = spec.max_groups(self.groups);
        if self.by.is_empty() { spec } else { spec.by(self.by.iter().cloned()) }
    }

    /// Maximum number of columns of a heat map.
    fn columns(&self) -> usize {
        match terminal_size::terminal_size() {
            _ if self.output.is_some() => picture::COLUMNS,
            Some((width, _)) => usize::from(width.0).saturating_sub(20).clamp(10, picture::COLUMNS),
            None => 60,
        }
    }

    fn write(
        &self,
        paths: &[PathBuf],
        snapshot: Snapshot,
        is_duration: bool,
        map: Option<&HeatMap>,
    ) -> Result<(), Failure> {
        if let Some(file) = &self.output {
            let paths: Vec<_> = paths.iter().map(|path| path.display().to_string()).collect();
            return draw(snapshot, is_duration, map, &paths.join(", "), file);
        }
        if self.json {
            let slices = map.map(|map| map.slices.as_slice());
            return Ok(output::json(&Object { snapshot: &snapshot, slices })?);
        }
        write(&mut output::styled(), snapshot, is_duration, map)
    }
}

/// The object that `--json` writes.
#[derive(Serialize)]
struct Object<'a> {
    #[serde(flatten)]
    snapshot: &'a Snapshot,
    #[serde(skip_serializing_if = "Option::is_none")]
    slices: Option<&'a [Slice]>,
}
