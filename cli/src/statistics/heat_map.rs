//! Distributions over time: the time range is cut into slices with a distribution each.

use super::chart::value;
use super::number;
use crate::output::has_color;
use anstyle::{Ansi256Color, Style};
use serde::Serialize;
use tracepoint_probes::snapshot::{Bucket, Distribution, Results};
use tracepoint_reader::{EventView, Visitor};
use tracepoint_session_spec::TraceStatistic;

/// The rows of a heat map in a terminal.
const ROWS: usize = 20;
/// The shades of cells with events, from few to many, and their colours in the palette of 256.
const SHADES: [(char, u8); 4] = [('░', 18), ('▒', 26), ('▓', 208), ('█', 226)];

/// A statistic without groups over the whole range, and one per time slice; each slice thus has its own minimum and maximum.
pub(super) struct Slices {
    pub(super) statistic: TraceStatistic,
    /// The statistic of the open slice.
    slice: TraceStatistic,
    /// The beginning in nanoseconds since the epoch, then the width of a slice in nanoseconds.
    begin: i64,
    width: i64,
    /// Maximum number of slices.
    columns: usize,
    /// The slice of the last event.
    open: Option<usize>,
    closed: Vec<Slice>,
}

/// A slice with events.
#[derive(Serialize)]
pub(super) struct Slice {
    /// Number of slices before this one, including empty ones.
    #[serde(skip)]
    pub(super) index: usize,
    /// Nanoseconds since the epoch.
    begin_ns: i64,
    /// Nanoseconds.
    width_ns: i64,
    #[serde(flatten)]
    pub(super) values: Distribution,
}

impl Slice {
    pub(super) const fn new(index: usize, begin_ns: i64, width_ns: i64, values: Distribution) -> Self {
        Self { index, begin_ns, width_ns, values }
    }
}

impl Visitor for Slices {
    fn event(&mut self, event: &EventView<'_>) {
        if self.open.is_none() {
            self.begin = event.time_ns();
        }
        // In a damaged trace, event times may be outside their packets, and may go backwards.
        let since = event.time_ns().saturating_sub(self.begin).max(0);
        let index = usize::try_from(since / self.width).unwrap_or(usize::MAX).min(self.columns - 1);
        let index = index.max(self.open.unwrap_or(0));
        if self.open != Some(index) {
            self.close();
            self.open = Some(index);
        }
        self.statistic.observe(*event);
        self.slice.observe(*event);
    }
}

impl Slices {
    /// At most `columns` slices, starting with the first event. Events after `range` go into the last one.
    pub(super) fn new(statistic: TraceStatistic, range: (i64, i64), columns: usize) -> Self {
        let (whole, columns) = (range.1.saturating_sub(range.0).max(1), columns.max(1));
        let width = round_up((whole / i64::try_from(columns).unwrap_or(1)).saturating_add(1));
        let slice = statistic.empty();
        Self { statistic, slice, begin: 0, width, columns, open: None, closed: Vec::new() }
    }

    fn close(&mut self) {
        let Some(index) = self.open else { return };
        let values = distribution(self.slice.take().results).unwrap_or_default();
        if values.count() > 0 {
            let begin_ns =
                self.begin.saturating_add(self.width.saturating_mul(i64::try_from(index).unwrap_or(i64::MAX)));
            self.closed.push(Slice { index, begin_ns, width_ns: self.width, values });
        }
    }

    /// The map, after the last event.
    pub(super) fn finish(mut self) -> HeatMap {
        self.close();
        let columns = self.closed.last().map_or(0, |slice| slice.index + 1);
        HeatMap {
            width: self.width,
            columns,
            all: distribution(self.statistic.snapshot().results).unwrap_or_default(),
            slices: self.closed,
        }
    }
}

/// The distribution; `None` if it has groups.
pub(super) fn distribution(results: Results) -> Option<Distribution> {
    match results {
        Results::Histogram(rows) | Results::Latency { durations: rows, .. } => rows.all,
        _ => None,
    }
}

/// The number of values in each of `bins`, which are the bins of a distribution that contains these values.
pub(super) fn counts(bins: &[Bucket], values: &Distribution) -> Vec<u64> {
    let mut counts = vec![0_u64; bins.len()];
    for bucket in values.buckets() {
        let above = bins.partition_point(|bin| bin.from <= bucket.from);
        if let Some(count) = counts.get_mut(above.saturating_sub(1)) {
            *count = count.saturating_add(bucket.count);
        }
    }
    counts
}

/// 1, 2 or 5 times a power of ten, at least `time`.
pub(super) fn round_up(time: i64) -> i64 {
    let mut step = 1_i64;
    loop {
        for factor in [1, 2, 5] {
            if step.saturating_mul(factor) >= time {
                return step.saturating_mul(factor);
            }
        }
        step = step.saturating_mul(10);
    }
}

pub(super) struct HeatMap {
    /// Width of a slice in nanoseconds.
    pub(super) width: i64,
    pub(super) columns: usize,
    pub(super) all: Distribution,
    /// The slices with values, ascending.
    pub(super) slices: Vec<Slice>,
}

impl HeatMap {
    /// The cells with values: column, row (0 for the lowest values) and count.
    pub(super) fn cells(&self, rows: &[Bucket]) -> Vec<(usize, usize, u64)> {
        let mut cells = Vec::new();
        for slice in &self.slices {
            let counted = counts(rows, &slice.values).into_iter().enumerate().filter(|(_, count)| *count > 0);
            cells.extend(counted.map(|(row, count)| (slice.index, row, count)));
        }
        cells
    }

    /// The time from the beginning to the end of the first `columns` slices.
    pub(super) fn time(&self, columns: usize) -> String {
        format!("+{}", value(number(self.width.unsigned_abs()) * number(columns as u64), true))
    }

    /// Lines of text, the largest values first, followed by the time axis.
    pub(super) fn lines(&self, is_duration: bool) -> Vec<String> {
        let rows = self.all.bins(ROWS);
        let mut counts = vec![vec![0; self.columns]; rows.len()];
        let mut most = 0;
        for (column, row, count) in self.cells(&rows) {
            counts[row][column] = count;
            most = most.max(count);
        }
        let labels: Vec<_> = rows.iter().map(|row| value(row.from, is_duration)).collect();
        let width = labels.iter().map(String::len).max().unwrap_or(0);
        let has_color = has_color();
        let cell = |count: &u64| match shade(*count, most, SHADES.len()) {
            None => " ".to_owned(),
            Some(shade) if has_color => {
                let (text, color) = SHADES[shade];
                let style = Style::new().fg_color(Some(Ansi256Color(color).into()));
                format!("{style}{text}{style:#}")
            }
            Some(shade) => SHADES[shade].0.to_string(),
        };
        let line = |(label, counts): (&String, &Vec<u64>)| {
            let cells: String = counts.iter().map(cell).collect();
            format!("  {label:>width$} │{}", cells.trim_end())
        };
        let mut lines: Vec<_> = labels.iter().zip(&counts).rev().map(line).collect();
        let end = self.time(self.columns);
        lines.push(format!("  {:width$} └{}", "", "─".repeat(self.columns)));
        lines.push(format!("  {:width$}  0{end:>left$}", "", left = self.columns.saturating_sub(1)));
        let slice = value(number(self.width.unsigned_abs()), true);
        lines.push(format!("  a column: {slice}; █: up to {most}, each shade below: a part of that, logarithmic"));
        lines
    }
}

/// One of `shades`, in proportion to the logarithm of the count; `None` for 0.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a shade")]
pub(super) fn shade(count: u64, most: u64, shades: usize) -> Option<usize> {
    let part = number(count).ln_1p() / number(most.max(1)).ln_1p();
    (count > 0).then(|| ((part * number(shades as u64)).ceil() as usize).clamp(1, shades) - 1)
}

#[cfg(test)]
mod tests {
    use super::{round_up, shade};

    #[test]
    fn slices_have_round_widths() {
        for (time, width) in [(1, 1), (3, 5), (11, 20), (5_000_000, 5_000_000), (5_000_001, 10_000_000)] {
            assert_eq!(round_up(time), width);
        }
        assert_eq!(round_up(i64::MAX), i64::MAX);
    }

    #[test]
    fn shades_are_logarithmic() {
        let shades: Vec<_> = [0, 1, 10, 100, 1000].map(|count| shade(count, 1000, 4)).to_vec();
        assert_eq!(shades, [None, Some(0), Some(1), Some(2), Some(3)]);
        assert_eq!(shade(1, 1, 4), Some(3));
    }
}
