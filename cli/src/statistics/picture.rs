//! Distributions and heat maps as pictures.

use super::chart::{PERCENTILES, percentile, value};
use super::heat_map::{HeatMap, counts, round_up, shade};
use super::number;
use super::svg::{Anchor, Axis, Picture, WIDTH};
use super::text::named;
use crate::failure::Failure;
use crate::message;
use crate::output_file;
use std::path::Path;
use tracepoint_probes::Snapshot;
use tracepoint_probes::snapshot::{Bucket, Distribution, Results, Rows};

/// Maximum numbers of histogram bars, heat map rows, and heat map columns.
const BARS: usize = 96;
const ROWS: usize = 48;
pub(super) const COLUMNS: usize = 120;
/// Maximum number of groups drawn; the others are only in the text and in JSON.
const GROUPS: usize = 12;
const LEFT: f64 = 80.0;
const INNER: f64 = WIDTH - LEFT - 24.0;
const HEADING: f64 = 64.0;
const SHADES: usize = 8;

/// Writes a picture. `source` names the origin of the values.
pub(super) fn draw(
    snapshot: Snapshot,
    is_duration: bool,
    map: Option<&HeatMap>,
    source: &str,
    file: &Path,
) -> Result<(), Failure> {
    let (Results::Histogram(mut rows) | Results::Latency { durations: mut rows, .. }) = snapshot.results else {
        return Ok(());
    };
    rows.sort_by_rank(Distribution::count);
    let count: u64 = rows.values().map(Distribution::count).fold(0, u64::saturating_add);
    let more = rows.groups.len().saturating_sub(GROUPS);
    let more = if more > 0 { format!(", {more} further groups are not drawn") } else { String::new() };
    let note = format!("{source}: {}{more}", message::counted(count, "value"));
    let subject = Subject { title: &snapshot.statistic, note: &note, is_duration };
    let picture = map.map_or_else(|| subject.histograms(&rows), |map| subject.heat_map(map));
    output_file::write(file, picture.as_bytes())
}

/// The subject of a picture.
struct Subject<'a> {
    /// The statistic.
    title: &'a str,
    /// The origin of the events.
    note: &'a str,
    is_duration: bool,
}

impl Subject<'_> {
    fn begin(&self) -> Picture {
        let mut picture = Picture::default();
        picture.text("title", (16.0, 28.0), Anchor::Start, self.title);
        picture.text("note", (16.0, 48.0), Anchor::Start, self.note);
        picture
    }

    fn unit(&self) -> &'static str {
        if self.is_duration { "duration" } else { "value" }
    }

    /// The histogram of all values, or one per group below each other with the same value axis.
    fn histograms(&self, rows: &Rows<Distribution>) -> String {
        let mut together = Distribution::default();
        rows.values().for_each(|values| together.merge(values.clone()));
        let bins = together.bins(BARS);
        let axis = Axis { bins: &bins, is_duration: self.is_duration };
        let groups = rows.groups.iter().take(GROUPS).map(|row| (named(&row.keys), &row.value));
        let others = [(&rows.overflow, "(further groups)"), (&rows.ungrouped, "(no group)"), (&rows.all, "")];
        let others = others.into_iter().filter_map(|(values, name)| Some((name.to_owned(), values.as_ref()?)));
        let panels: Vec<_> = groups.chain(others).collect();
        let height = if panels.len() == 1 { 300.0 } else { 150.0 };
        let mut picture = self.begin();
        let mut top = HEADING;
        for (name, values) in panels {
            self.histogram(&mut picture, &axis, (top, height), &name, values);
            top += height + 56.0;
        }
        picture.finish(self.title, top + 8.0)
    }

    fn histogram(
        &self,
        picture: &mut Picture,
        axis: &Axis<'_>,
        (top, height): (f64, f64),
        name: &str,
        values: &Distribution,
    ) {
        let bottom = top + height;
        let counts = counts(axis.bins, values);
        let most = counts.iter().copied().max().unwrap_or(0).max(1);
        let step = tick_step(most);
        for tick in (0..=most).step_by(usize::try_from(step).unwrap_or(usize::MAX)) {
            let y = bottom - number(tick) / number(most) * height;
            picture.line("grid", (LEFT, y), (LEFT + INNER, y));
            picture.text("", (LEFT - 8.0, y + 4.0), Anchor::End, &tick.to_string());
        }
        let bar = INNER / number(axis.bins.len().max(1) as u64);
        for (index, (bin, count)) in axis.bins.iter().zip(&counts).enumerate().filter(|(_, (_, count))| **count > 0) {
            let size = number(*count) / number(most) * height;
            let corner = (LEFT + number(index as u64) * bar, bottom - size);
            picture.rect(corner, ((bar - 0.5).max(0.5), size), 1.0, &format!("{}: {count}", self.bounds(bin)));
        }
        picture.line("axis", (LEFT, bottom), (LEFT + INNER, bottom));
        for (position, text) in axis.ticks(0.09) {
            let x = LEFT + position * INNER;
            picture.line("axis", (x, bottom), (x, bottom + 5.0));
            picture.text("", (x, bottom + 18.0), Anchor::Middle, &text);
        }
        picture.text("note", (LEFT + INNER / 2.0, bottom + 34.0), Anchor::Middle, self.unit());
        let group = if name.is_empty() { "count".to_owned() } else { format!("count of {name}") };
        picture.text("note", (16.0, top - 6.0), Anchor::Start, &group);
        for (row, percent) in PERCENTILES.into_iter().enumerate() {
            let Some((at, text)) = values.percentile(percent).zip(percentile(values, percent, self.is_duration)) else {
                continue;
            };
            let x = LEFT + axis.position(at) * INNER;
            picture.line("mark", (x, top), (x, bottom));
            let y = top + 12.0 + 14.0 * number(row as u64);
            let (x, anchor) = if x > WIDTH - 130.0 { (x - 4.0, Anchor::End) } else { (x + 4.0, Anchor::Start) };
            picture.text("", (x, y), anchor, &format!("p{percent} {text}"));
        }
    }

    /// The distribution over time, with lines for the median and the 99th percentile.
    fn heat_map(&self, map: &HeatMap) -> String {
        let bins = map.all.bins(ROWS);
        let axis = Axis { bins: &bins, is_duration: self.is_duration };
        let (top, height) = (HEADING + 16.0, 400.0);
        let bottom = top + height;
        let mut picture = self.begin();
        for (position, text) in axis.ticks(0.06) {
            let y = bottom - position * height;
            picture.line("grid", (LEFT - 5.0, y), (LEFT + INNER, y));
            picture.text("", (LEFT - 8.0, y + 4.0), Anchor::End, &text);
        }
        let cells = map.cells(&bins);
        let most = cells.iter().map(|(_, _, count)| *count).max().unwrap_or(0);
        let cell = (INNER / number(map.columns.max(1) as u64), height / number(bins.len().max(1) as u64));
        for (column, row, count) in cells {
            let (x, y) = (LEFT + number(column as u64) * cell.0, bottom - number(row as u64 + 1) * cell.1);
            let title = format!("{}, {}: {count}", map.time(column), self.bounds(&bins[row]));
            picture.rect((x, y), cell, opacity(shade(count, most, SHADES).unwrap_or(0)), &title);
        }
        for percent in [50.0, 99.0] {
            let points = map.slices.iter().filter_map(|slice| {
                let x = LEFT + (number(slice.index as u64) + 0.5) * cell.0;
                Some((x, bottom - axis.position(slice.values.percentile(percent)?) * height))
            });
            let points: Vec<_> = points.collect();
            if let Some((x, y)) = points.last() {
                picture.text("", (x + 4.0, y - 4.0), Anchor::End, &format!("p{percent}"));
            }
            picture.polyline(&points);
        }
        picture.line("axis", (LEFT, bottom), (LEFT + INNER, bottom));
        for part in 0..=4_usize {
            let column = map.columns * part / 4;
            let x = LEFT + number(column as u64) * cell.0;
            picture.line("axis", (x, bottom), (x, bottom + 5.0));
            picture.text("", (x, bottom + 18.0), Anchor::Middle, &map.time(column));
        }
        picture.text("note", (16.0, top - 12.0), Anchor::Start, self.unit());
        let legend = bottom + 34.0;
        let slice = value(number(map.width.unsigned_abs()), true);
        let text = format!("time, {slice} in a column; colours: 1 to {most} events, logarithmic");
        picture.text("note", (LEFT, legend), Anchor::Start, &text);
        for shade in 0..SHADES {
            let x = LEFT + INNER - number((SHADES - shade) as u64) * 18.0;
            picture.rect((x, legend - 11.0), (18.0, 12.0), opacity(shade), "");
        }
        picture.finish(self.title, legend + 16.0)
    }

    fn bounds(&self, bin: &Bucket) -> String {
        format!("[{}, {})", value(bin.from, self.is_duration), value(bin.to, self.is_duration))
    }
}

fn opacity(shade: usize) -> f64 {
    0.12 + 0.88 * number(shade as u64) / number(SHADES as u64 - 1)
}

/// A step of 1, 2 or 5 times a power of ten that gives at most 5 ticks.
fn tick_step(most: u64) -> u64 {
    round_up(i64::try_from(most.div_ceil(5)).unwrap_or(i64::MAX)).unsigned_abs()
}
