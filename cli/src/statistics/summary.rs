//! A statistic over the selected events of traces.

use super::pass::{Input, Order, Seen};
use crate::failure::Failure;
use tracepoint_control::TraceStatistic;
use tracepoint_probes::snapshot::{Results, Rows};
use tracepoint_probes::{Snapshot, StatisticSpec};
use tracepoint_reader::{EventView, Trace, Visitor};

struct Observer(TraceStatistic);

impl Visitor for Observer {
    #[inline]
    fn event(&mut self, event: &EventView<'_>) {
        self.0.observe(*event);
    }
}

/// The statistic over the events of an opened trace, without any yet.
pub(super) fn statistic(input: Input<'_>, trace: &Trace, spec: StatisticSpec) -> Result<TraceStatistic, Failure> {
    let (filter, metadata) = (input.filter()?, trace.metadata().map(|(_, metadata)| metadata));
    TraceStatistic::new(spec, metadata, |class| filter.may_accept(class))
        .map_err(|error| Failure::Refused(error.to_string()))
}

/// Computes it. A latency needs the events in the order of their times. So do groups, if there are more than have room: the first ones get it.
pub(super) fn summary(input: Input<'_>, trace: &Trace, spec: StatisticSpec) -> Result<(Snapshot, Seen), Failure> {
    let statistic = statistic(input, trace, spec)?;
    let take = |order| -> Result<(Snapshot, Seen), Failure> {
        let start = |threads| statistic.for_threads(threads).into_iter().map(Observer).collect();
        let (observers, seen) = input.pass(trace, order, start)?;
        let empty = || statistic.snapshot();
        Ok((observers.first().map_or_else(empty, |Observer(one)| one.snapshot()), seen))
    };
    if !statistic.needs_order() {
        let (snapshot, seen) = take(Order::Any)?;
        if !has_overflow(&snapshot) {
            return Ok((snapshot, seen));
        }
    }
    take(Order::Time)
}

fn has_overflow(snapshot: &Snapshot) -> bool {
    match &snapshot.results {
        Results::Count(Rows { overflow, .. }) => overflow.is_some(),
        Results::Histogram(Rows { overflow, .. }) => overflow.is_some(),
        _ => false,
    }
}
