//! `tracectl hist --heat-map` of running programs: one column with the increments of each interval, the newest last.

use super::View;
use super::hist::only_one;
use super::screen::Screen;
use crate::failure::Failure;
use crate::message;
use crate::output;
use crate::statistics::heat_map::{HeatMap, Slice, distribution};
use crate::statistics::picture::draw;
use crate::statistics::text::write;
use serde::Serialize;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tracepoint_probes::snapshot::Distribution;
use tracepoint_probes::{Measure, Snapshot};
use tracepoint_session_io::statistics::{SessionStatistics, StatisticResult};

pub(crate) enum MapOutput<'a> {
    Text,
    /// An object for each interval, with its distribution.
    Json,
    /// A picture, rewritten at each interval.
    Picture(&'a Path),
}

/// The distributions of the last intervals.
pub(crate) struct LiveMap<'a> {
    output: MapOutput<'a>,
    /// Restricts a named session to the distribution of this field or latency.
    only: Option<Measure>,
    /// The length of an interval in nanoseconds, then the maximum number of columns shown.
    interval: u64,
    columns: usize,
    /// The time of the first look, on the clock of the processes, and the number of columns that were scrolled out.
    began: u64,
    gone: usize,
    before: Distribution,
    slices: Vec<Slice>,
    screen: Screen,
}

/// The numbers at one time, and the increments of the last interval.
#[derive(Serialize)]
struct Object<'a> {
    time_ns: i64,
    #[serde(flatten)]
    snapshot: &'a Snapshot,
    slices: &'a [Slice],
}

impl<'a> LiveMap<'a> {
    pub(crate) fn new(output: MapOutput<'a>, only: Option<Measure>, interval: Duration, columns: usize) -> Self {
        Self {
            output,
            only,
            interval: u64::try_from(interval.as_nanos()).unwrap_or(u64::MAX).max(1),
            columns: columns.max(1),
            began: 0,
            gone: 0,
            before: Distribution::default(),
            slices: Vec::new(),
            screen: Screen::new(),
        }
    }

    /// Adds the increments since the last look; returns true if there are any.
    fn add(&mut self, time: u64, all: Distribution) -> bool {
        let elapsed = time.saturating_sub(self.began).saturating_add(self.interval / 2) / self.interval;
        let number = usize::try_from(elapsed.saturating_sub(1)).unwrap_or(usize::MAX);
        let values = all.since(&self.before);
        self.before = all;
        let shift = (number + 1).saturating_sub(self.columns).saturating_sub(self.gone);
        self.gone += shift;
        self.slices.retain(|slice| slice.index >= shift);
        self.slices.iter_mut().for_each(|slice| slice.index -= shift);
        let has_values = values.count() > 0;
        if has_values {
            let width = i64::try_from(self.interval).unwrap_or(i64::MAX);
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
            let begin = i64::try_from(now).unwrap_or(i64::MAX).saturating_sub(width);
            self.slices.push(Slice::new(number - self.gone, begin, width, values));
        }
        has_values
    }

    fn map(&mut self) -> HeatMap {
        let mut all = Distribution::default();
        self.slices.iter().for_each(|slice| all.merge(slice.values.clone()));
        let columns = self.slices.last().map_or(0, |slice| slice.index + 1);
        let width = i64::try_from(self.interval).unwrap_or(i64::MAX);
        HeatMap { width, columns, all, slices: std::mem::take(&mut self.slices) }
    }
}

impl View for LiveMap<'_> {
    fn is_of_intervals(&self) -> bool {
        true
    }

    fn begin(&mut self, statistics: &SessionStatistics) {
        self.began = statistics.time;
        // If no process computes it yet, the previous distribution is empty.
        let before = only_one(statistics, self.only.as_ref()).ok();
        self.before = before.and_then(|shown| distribution(shown.snapshot.results)).unwrap_or_default();
    }

    fn show(&mut self, statistics: &SessionStatistics) -> Result<(), Failure> {
        let StatisticResult { snapshot, is_duration, .. } = only_one(statistics, self.only.as_ref())?;
        let all = distribution(snapshot.results.clone()).ok_or_else(|| {
            let text = format!("a heat map shows one distribution, and the session computes `{}`", snapshot.statistic);
            Failure::Refused(text)
        })?;
        let is_added = self.add(statistics.time, all);
        if let MapOutput::Json = self.output {
            let newest = &self.slices[self.slices.len() - usize::from(is_added)..];
            return Ok(output::json(&Object { time_ns: statistics.time_ns, snapshot: &snapshot, slices: newest })?);
        }
        let map = self.map();
        let outcome = if let MapOutput::Picture(file) = self.output {
            let programs = message::counted(statistics.processes.len() as u64, "program");
            draw(snapshot, is_duration, Some(&map), &programs, file)
        } else {
            let mut text = Vec::new();
            write(&mut text, snapshot, is_duration, Some(&map))
                .and_then(|()| self.screen.show(&String::from_utf8_lossy(&text)))
        };
        self.slices = map.slices;
        outcome
    }
}
