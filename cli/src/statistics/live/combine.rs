//! Combines results over processes, rules and events.

use tracepoint_probes::snapshot::Results;
use tracepoint_session_io::statistics::{SessionStatistics, StatisticResult};

/// The combined results of all processes, with each event counted once. If several rules of one process compute the same statistic, one of them
/// counts.
/// A rate is treated as a count.
pub(super) fn distinct(statistics: &SessionStatistics) -> Vec<StatisticResult> {
    let is_same = |a: &StatisticResult, b: &StatisticResult| {
        let is_count = |result: &StatisticResult| match &result.snapshot.results {
            Results::Rate(_) => true,
            Results::Count(rows) => rows.all.is_some(),
            _ => false,
        };
        let is_same_statistic = a.snapshot.statistic == b.snapshot.statistic || is_count(a) && is_count(b);
        (&a.event, &a.rule.filter) == (&b.event, &b.rule.filter) && is_same_statistic
    };
    let mut all: Vec<StatisticResult> = Vec::new();
    for process in &statistics.processes {
        let mut own: Vec<&StatisticResult> = Vec::new();
        for result in &process.statistics {
            if own.iter().any(|known| is_same(known, result)) {
                continue;
            }
            own.push(result);
            match all.iter_mut().find(|known| is_same(known, result)) {
                // Results of another kind, such as a rate next to a count, are left out.
                Some(known) => drop(known.snapshot.merge(result.snapshot.clone())),
                None => all.push(result.clone()),
            }
        }
    }
    all
}

/// The results of all events together, for each statistic.
pub(super) fn over_events(results: Vec<StatisticResult>) -> Vec<StatisticResult> {
    let mut merged: Vec<StatisticResult> = Vec::new();
    for result in results {
        let same = merged.iter_mut().find(|known| known.snapshot.statistic == result.snapshot.statistic);
        let added = same.is_some_and(|known| known.snapshot.merge(result.snapshot.clone()).is_ok());
        if !added {
            merged.push(result);
        }
    }
    merged
}
