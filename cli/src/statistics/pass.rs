//! One pass over the selected events of traces: in parallel, or in time order.

use crate::failure::{Failure, Outcome};
use crate::message;
use crate::open::open;
use crate::progress::Bar;
use crate::selection::{EventSelection, TimeRange, TimeSelection};
use crate::time_point::Context;
use std::path::PathBuf;
use tracepoint_reader::{Damage, EventView, Item, Loss, LossKind, Parallelism, Trace, Visitor};
use tracepoint_session_spec::TraceFilter;

/// The traces to read, and the selection of their events.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Input<'a> {
    pub(crate) paths: &'a [PathBuf],
    pub(crate) selection: &'a EventSelection,
    pub(crate) times: TimeSelection,
}

/// The order in which visitors see events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// Several threads read parts of streams in any order.
    Any,
    /// One thread reads all events in time order.
    Time,
}

/// Information gathered in a pass in addition to the statistics.
#[derive(Debug, Default)]
pub(crate) struct PassSummary {
    /// The times of the earliest and the latest selected event, in nanoseconds since the epoch.
    pub(crate) range: Option<(i64, i64)>,
    /// Number of events missing in the traces, of any kind.
    pub(crate) lost: u64,
    /// True if more events are missing, in unknown number.
    pub(crate) lost_more: bool,
    damage: u64,
    unchecked: u64,
}

impl PassSummary {
    /// The time between the first and the last event in seconds; 0 for one event.
    #[expect(clippy::cast_precision_loss, reason = "a time")]
    pub(crate) fn seconds(&self) -> f64 {
        self.range.map_or(0.0, |(first, last)| last.abs_diff(first) as f64 / 1e9)
    }

    /// Reports lost events and packets without a checksum.
    pub(crate) fn report(&self) -> Outcome {
        message::note_lost(self.lost, self.lost_more);
        if self.unchecked > 0 {
            message::note_unchecked(self.unchecked);
        }
        if self.damage == 0 { Outcome::Success } else { Outcome::Incomplete }
    }

    fn add_range(&mut self, (first, last): (i64, i64)) {
        let (known_first, known_last) = self.range.unwrap_or((first, last));
        self.range = Some((known_first.min(first), known_last.max(last)));
    }

    fn add_loss(&mut self, loss: &Loss, times: TimeRange) {
        match loss.kind {
            _ if !times.includes(loss.from_ns, loss.to_ns) => {}
            LossKind::Events(Some(events)) | LossKind::Packets { events: Some(events), .. } => {
                // Counters of a damaged trace may be arbitrary.
                self.lost = self.lost.saturating_add(events);
            }
            _ => self.lost_more = true,
        }
    }

    /// Takes the items within these times in order, and stops at the first event after them.
    fn add_items(&mut self, trace: &Trace, times: TimeRange, mut take: impl FnMut(&Item)) {
        let mut items = trace.items_since(times.since.unwrap_or(i64::MIN));
        for item in items.by_ref() {
            match &item {
                Item::Event(event) if times.is_over(event.time_ns) => break,
                Item::Loss(loss) if !times.includes(loss.from_ns, loss.to_ns) => continue,
                Item::Loss(loss) => self.add_loss(loss, times),
                Item::Damage(damage) => self.add_damage(damage),
                _ => {}
            }
            take(&item);
        }
        self.unchecked = items.unchecked();
    }

    fn add_damage(&mut self, damage: &Damage) {
        message::error(&damage.to_string());
        self.damage += 1;
    }
}

/// Passes selected events to a visitor.
struct FilterVisitor<V> {
    filter: TraceFilter,
    times: TimeRange,
    range: Option<(i64, i64)>,
    visitor: V,
}

impl<V: Visitor> Visitor for FilterVisitor<V> {
    #[inline]
    fn event(&mut self, event: &EventView<'_>) {
        let time = event.time_ns();
        if self.times.includes(time, time) && self.filter.accepts(*event) {
            let (first, last) = self.range.unwrap_or((time, time));
            self.range = Some((first.min(time), last.max(time)));
            self.visitor.event(event);
        }
    }
}

impl Input<'_> {
    /// The filter for events by name, level and fields.
    pub(crate) fn filter(&self) -> Result<TraceFilter, Failure> {
        self.selection.filter()
    }

    /// Opens the traces, and checks that they contain the selected events and fields.
    pub(crate) fn open(&self) -> Result<Trace, Failure> {
        let trace = open(self.paths)?;
        self.filter()?.check(trace.metadata().map(|(_, metadata)| metadata))?;
        Ok(trace)
    }

    /// Passes the selected events in time order, with the losses and the damage between them.
    pub(crate) fn in_order(&self, trace: &Trace, mut take: impl FnMut(&Item)) -> Result<PassSummary, Failure> {
        self.all_in_order(trace, |item, is_selected| {
            if is_selected {
                take(item);
            }
        })
    }

    /// Passes all events in the selected times, with the losses and the damage between them. The second argument is true if the item is selected.
    pub(crate) fn all_in_order(
        &self,
        trace: &Trace,
        mut take: impl FnMut(&Item, bool),
    ) -> Result<PassSummary, Failure> {
        let (times, mut filter, mut seen) = (self.time_range(trace)?, self.filter()?, PassSummary::default());
        let mut range: Option<(i64, i64)> = None;
        seen.add_items(trace, times, |item| {
            if let Item::Event(event) = item {
                if !times.includes(event.time_ns, event.time_ns) {
                    return;
                }
                if !filter.accepts(event) {
                    take(item, false);
                    return;
                }
                range = Some((range.map_or(event.time_ns, |(first, _)| first), event.time_ns));
            }
            take(item, true);
        });
        seen.range = range;
        Ok(seen)
    }

    /// The selected times.
    pub(crate) fn time_range(&self, trace: &Trace) -> Result<TimeRange, Failure> {
        let range = if self.times.refers_to_the_trace() { trace.range() } else { None };
        self.times.resolve(&Context { range, utc: false })
    }

    /// Passes the selected events to visitors. `start` returns as many as requested, and is called again if everything has to be read again.
    pub(super) fn pass<V: Visitor>(
        &self,
        trace: &Trace,
        order: Order,
        start: impl Fn(usize) -> Vec<V>,
    ) -> Result<(Vec<V>, PassSummary), Failure> {
        let (times, filter) = (self.time_range(trace)?, self.filter()?);
        let select = |visitor| FilterVisitor { filter: filter.clone(), times, range: None, visitor };
        let start = |threads| start(threads).into_iter().map(select).collect();
        let mut seen = PassSummary::default();
        let visitors = match order {
            Order::Any => {
                let mut bar = Bar::new();
                let mut progress = |done, all| bar.set("reading", done, all);
                let range = (times.since, times.until);
                let (visitors, found) = trace.visit(range, Parallelism::default(), start, &mut progress);
                found.losses.iter().for_each(|loss| seen.add_loss(loss, times));
                found.damage.iter().for_each(|damage| seen.add_damage(damage));
                seen.unchecked = found.unchecked;
                visitors
            }
            Order::Time => {
                let mut visitors = start(1);
                seen.add_items(trace, times, |item| {
                    if let Item::Event(event) = item {
                        visitors[0].event(&EventView::from(event));
                    }
                });
                visitors
            }
        };
        visitors.iter().filter_map(|visitor| visitor.range).for_each(|range| seen.add_range(range));
        Ok((visitors.into_iter().map(|selected| selected.visitor).collect(), seen))
    }
}
