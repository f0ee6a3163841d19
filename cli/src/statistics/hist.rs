//! `tracectl hist`: how the values of a field, or the times between two events, are distributed.

use super::chart::{self, PERCENTILES};
use super::pass::pass;
use crate::failure::{EXIT_CODES, Failure, VerbResult};
use crate::output;
use crate::selection::EventSelection;
use crate::table::{self, Table};
use anstyle::Style;
use clap::Args;
use std::io::Write;
use std::path::PathBuf;
use tracepoint_control::TraceStatistic;
use tracepoint_probes::snapshot::{Distribution, Operations, Results, Rows};
use tracepoint_probes::{GroupKey, Measure, Snapshot, StatisticSpec};

/// Shows how the values of a field, or the times between two events, are distributed in recorded traces
///
/// Percentiles are within 1.6 % of the exact ones. With --by, or `by` behind the statistic, a line for each group. In a latency,
/// the first event begins an operation, and the second with an equal value of the field ends it; without `by`, in the same thread.
#[derive(Debug, Args)]
#[command(after_help = format!("\
Examples:
  tracectl hist size /tmp/trace
  tracectl hist size --by path -e 'shop:answered' /tmp/trace
  tracectl hist 'latency(shop:asked, shop:answered by id)' --by path /tmp/trace
  tracectl hist --json 'latency(db:begin, db:end)' /tmp/trace | jq .all.p99

{EXIT_CODES}"))]
pub(crate) struct Hist {
    /// A field, or `latency(BEGIN, END by FIELD)` with the names of two events
    #[arg(value_name = "FIELD|LATENCY", value_parser = statistic)]
    statistic: StatisticSpec,
    /// A directory with a CTF trace, or with several below it; or a dt file. Several paths are merged
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<PathBuf>,
    #[command(flatten)]
    selection: EventSelection,
    /// Group the events by the values of one or two fields; of a latency, fields of the second event
    #[arg(long, value_name = "FIELD,…", value_delimiter = ',')]
    by: Vec<String>,
    /// The largest number of groups; further values are shown together
    #[arg(long, value_name = "N", default_value_t = 100)]
    groups: usize,
    /// Write one JSON object: percentiles and buckets, in all (`all`) or by group (`groups`); durations are in nanoseconds
    #[arg(long)]
    json: bool,
}

fn statistic(text: &str) -> Result<StatisticSpec, String> {
    if text.chars().all(|c| c.is_alphanumeric() || c == '_') {
        return Ok(StatisticSpec::new(Measure::Histogram { field: text.to_owned() }));
    }
    let spec: StatisticSpec = text.parse().map_err(|error: tracepoint_probes::StatisticError| error.to_string())?;
    match spec.measure() {
        Measure::Histogram { .. } | Measure::Latency { .. } => Ok(spec),
        _ => Err("expected a field or a latency; `tracectl stat` counts".to_owned()),
    }
}

impl Hist {
    pub(crate) fn run(&self) -> VerbResult {
        let mut spec = self.statistic.clone().max_groups(self.groups);
        if !self.by.is_empty() {
            spec = spec.by(self.by.iter().cloned());
        }
        let prepare = |trace: &tracepoint_reader::Trace| {
            let filter = self.selection.filter()?;
            let metadata = trace.metadata().map(|(_, metadata)| metadata);
            TraceStatistic::new(spec, metadata, |class| filter.may_accept(class))
                .map_err(|error| Failure::Refused(error.to_string()))
        };
        let (statistic, seen) = pass(&self.paths, &self.selection, prepare, TraceStatistic::observe)?;
        let snapshot = statistic.snapshot();
        if self.json {
            output::json(&snapshot)?;
        } else {
            write(snapshot)?;
        }
        Ok(seen.report())
    }
}

fn write(snapshot: Snapshot) -> Result<(), Failure> {
    let mut out = output::styled();
    let (rows, operations) = match snapshot.results {
        Results::Histogram(rows) => (rows, None),
        Results::Latency { durations, operations } => (durations, Some(operations)),
        _ => return Ok(()),
    };
    writeln!(out, "{}", snapshot.statistic)?;
    match &rows.all {
        Some(all) => write_one(&mut out, all, operations.is_some())?,
        None => write_groups(rows, operations.is_some(), &mut out)?,
    }
    if let Some(Operations { replaced, no_room, in_flight, unmatched, .. }) = operations {
        let others = [
            (in_flight, "begun and not ended"),
            (replaced, "begun again before they ended"),
            (unmatched, "ended and not begun"),
            (no_room, "not measured, because too many were in flight"),
        ];
        for (count, what) in others.iter().filter(|(count, _)| *count > 0) {
            writeln!(out, "  {count} {what}")?;
        }
    }
    if snapshot.unusable > 0 {
        writeln!(out, "  {} without a value that has a place in it: negative, or no number", snapshot.unusable)?;
    }
    Ok(())
}

fn write_one(out: &mut impl Write, all: &Distribution, is_duration: bool) -> Result<(), Failure> {
    let text = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| chart::value(value, is_duration));
    write!(out, "  count {}, min {}, mean {}", all.count(), text(all.min()), text(all.mean().map(f64::round)))?;
    for percent in PERCENTILES {
        write!(out, ", p{percent} {}", text(all.percentile(percent)))?;
    }
    writeln!(out, ", max {}", text(all.max()))?;
    for line in chart::lines(all, is_duration) {
        writeln!(out, "{line}")?;
    }
    Ok(())
}

fn write_groups(mut rows: Rows<Distribution>, is_duration: bool, out: &mut impl Write) -> Result<(), Failure> {
    rows.sort_by_rank(Distribution::count);
    let mut table = Table::new("  ");
    let titles = ["COUNT", "MIN", "MEAN", "P50", "P90", "P99", "P99.9", "MAX"];
    table.heading([table::text("GROUP")].into_iter().chain(titles.map(table::number)));
    let mut add = |name: String, values: &Distribution| {
        let text = |value: Option<f64>| value.map_or_else(String::new, |value| chart::value(value, is_duration));
        let percentiles = PERCENTILES.map(|percent| text(values.percentile(percent)));
        let cells = [values.count().to_string(), text(values.min()), text(values.mean().map(f64::round))];
        let cells = cells.into_iter().chain(percentiles).chain([text(values.max())]).map(table::number);
        table.row(Style::new(), [table::text(name)].into_iter().chain(cells));
    };
    for row in &rows.groups {
        add(named(&row.keys), &row.value);
    }
    let others = [(&rows.overflow, "(further groups)"), (&rows.ungrouped, "(no group)")];
    for (values, name) in others.into_iter().filter_map(|(values, name)| Some((values.as_ref()?, name))) {
        add(name.to_owned(), values);
    }
    Ok(table.write(out)?)
}

/// The values of a group's fields.
pub(super) fn named(keys: &[GroupKey]) -> String {
    keys.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
