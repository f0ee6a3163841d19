//! Distributions and groups as text.

use super::chart::{self, PERCENTILES};
use super::heat_map::HeatMap;
use crate::failure::Failure;
use crate::table::{self, Table};
use anstyle::Style;
use std::io::Write;
use tracepoint_probes::snapshot::{Distribution, Operations, Results, Rows};
use tracepoint_probes::{GroupKey, Snapshot};

/// Writes a histogram or a latency: a total with its picture, groups as a table.
/// The values of durations are nanoseconds.
pub(super) fn write(
    mut out: &mut impl Write,
    snapshot: Snapshot,
    is_duration: bool,
    map: Option<&HeatMap>,
) -> Result<(), Failure> {
    let (rows, operations) = match snapshot.results {
        Results::Histogram(rows) => (rows, None),
        Results::Latency { durations, operations } => (durations, Some(operations)),
        _ => return Ok(()),
    };
    writeln!(out, "{}", snapshot.statistic)?;
    match &rows.all {
        Some(all) => write_one(&mut out, all, is_duration, map)?,
        None => write_groups(rows, is_duration, &mut out)?,
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

fn write_one(
    out: &mut impl Write,
    all: &Distribution,
    is_duration: bool,
    map: Option<&HeatMap>,
) -> Result<(), Failure> {
    let text = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
    let at = |percent| text(chart::percentile(all, percent, is_duration));
    write!(out, "  count {}, min {}, mean {}", all.count(), at(0.0), text(chart::mean(all, is_duration)))?;
    for percent in PERCENTILES {
        write!(out, ", p{percent} {}", at(percent))?;
    }
    writeln!(out, ", max {}", at(100.0))?;
    for line in map.map_or_else(|| chart::lines(all, is_duration), |map| map.lines(is_duration)) {
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
        let at = |percent| chart::percentile(values, percent, is_duration).unwrap_or_default();
        let cells = [values.count().to_string(), at(0.0), chart::mean(values, is_duration).unwrap_or_default()];
        let cells = cells.into_iter().chain(PERCENTILES.map(at)).chain([at(100.0)]).map(table::number);
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
