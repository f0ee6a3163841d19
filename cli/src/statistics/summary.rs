//! Statistics over the selected events of traces.

use super::pass::{Input, Order, PassSummary};
use crate::failure::Failure;
use tracepoint_probes::snapshot::{Results, Rows};
use tracepoint_probes::{Snapshot, StatisticSpec};
use tracepoint_reader::{EventView, Trace, Visitor};
use tracepoint_session_spec::TraceStatistic;

struct Observer(Vec<TraceStatistic>);

impl Visitor for Observer {
    #[inline]
    fn event(&mut self, event: &EventView<'_>) {
        for statistic in &mut self.0 {
            statistic.observe(*event);
        }
    }
}

/// The statistic over the events of an opened trace, initially empty.
pub(super) fn statistic(input: Input<'_>, trace: &Trace, spec: StatisticSpec) -> Result<TraceStatistic, Failure> {
    let (filter, metadata) = (input.filter()?, trace.metadata().map(|(_, metadata)| metadata));
    TraceStatistic::new(spec, metadata, |class| filter.may_accept(class))
        .map_err(|error| Failure::Refused(error.to_string()))
}

/// Computes the statistics. A latency needs the events in time order; so do groups that exceed the limit, because the first ones are kept.
pub(super) fn summaries(
    input: Input<'_>,
    trace: &Trace,
    statistics: &[TraceStatistic],
) -> Result<(Vec<Snapshot>, PassSummary), Failure> {
    let take = |order| -> Result<(Vec<Snapshot>, PassSummary), Failure> {
        let start = |threads| {
            let mut observers: Vec<_> = (0..threads).map(|_| Observer(Vec::new())).collect();
            for statistic in statistics {
                let parts = statistic.for_threads(threads);
                observers.iter_mut().zip(parts).for_each(|(Observer(all), part)| all.push(part));
            }
            observers
        };
        let (observers, seen) = input.pass(trace, order, start)?;
        let of = observers.first().map_or(statistics, |Observer(all)| all);
        Ok((of.iter().map(TraceStatistic::snapshot).collect(), seen))
    };
    if !statistics.iter().any(TraceStatistic::needs_order) {
        let (snapshots, seen) = take(Order::Any)?;
        if !snapshots.iter().any(has_overflow) {
            return Ok((snapshots, seen));
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
