//! The condition `statistic`: a value of a statistic that the session computes in this process is above or below a limit.
//!
//! The thread checks the statistics at intervals, and compares the values added within the last second, except for `count`, which is the
//! number since the statistic began. Each event and each group is checked separately.

use crate::statistics::LiveStatistic;
use std::collections::{BTreeMap, VecDeque};
use std::process;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};
use tracepoint_probes::snapshot::{Distribution, Results, Rows};
use tracepoint_session_io::trigger::{Detail, Occurrence};
use tracepoint_session_spec::{Aggregate, Threshold, TriggerCondition};

/// Interval at which the statistics are checked.
pub(super) const INTERVAL: Duration = Duration::from_millis(250);
/// The time span of values and rates.
const WINDOW: Duration = Duration::from_secs(1);
/// Maximum number of events and groups that are checked.
const MAX: usize = 10_000;

/// The statistics of one condition.
#[derive(Debug)]
pub(super) struct StatisticWatch {
    threshold: Threshold,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    statistics: Vec<LiveStatistic>,
    /// The snapshots of the last second, and one older; the newest last.
    seen: VecDeque<(Instant, BTreeMap<Key, Observation>)>,
    /// The events and groups for which the condition holds, sorted: since when, and whether that was acted on.
    holding: Vec<(Key, Instant, bool)>,
}

/// A rule, an event, and a group.
type Key = (String, String, Vec<String>);

#[derive(Clone, Debug)]
enum Observation {
    Count(u64),
    Values(Distribution),
}

impl StatisticWatch {
    pub(super) fn new(threshold: Threshold, statistics: &[LiveStatistic]) -> Self {
        let watch = Self { threshold, state: Mutex::default() };
        watch.follow(statistics);
        watch
    }

    /// Replaces the statistics of the session. Returns how many of them are watched.
    pub(super) fn follow(&self, statistics: &[LiveStatistic]) -> usize {
        let wanted = self.threshold.statistic.to_string();
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.statistics = statistics.iter().filter(|one| one.text == wanted).cloned().collect();
        state.statistics.len()
    }

    /// Checks the statistics; returns an occurrence for each event and group for which the condition has now held for long enough.
    pub(super) fn look(&self, when: &TriggerCondition) -> Vec<Occurrence> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        self.look_at(&mut state, Instant::now()).into_iter().map(|found| Self::occurrence(when, found)).collect()
    }

    fn look_at(&self, state: &mut State, now: Instant) -> Vec<(Key, f64)> {
        let seen = seen(&state.statistics);
        let mut holding = Vec::new();
        // The newest snapshot that is at least a window old; at first, the oldest one.
        while state.seen.get(1).is_some_and(|(then, _)| now.duration_since(*then) >= WINDOW) {
            state.seen.pop_front();
        }
        let before = state.seen.front();
        for (key, new) in &seen {
            let (then, old) = match before {
                Some((then, before)) => (Some(*then), before.get(key)),
                None => (None, None),
            };
            let seconds = then.map(|then| now.duration_since(then).as_secs_f64()).filter(|seconds| *seconds > 0.0);
            if let Some(value) = self.value(new, old, seconds).filter(|value| self.threshold.holds(*value)) {
                holding.push((key.clone(), value));
            }
        }
        state.seen.push_back((now, seen));
        let mut found = Vec::new();
        let before = std::mem::take(&mut state.holding);
        for (key, value) in holding {
            let known = before.binary_search_by(|(known, ..)| known.cmp(&key));
            let (since, was_told) = known.map_or((now, false), |index| (before[index].1, before[index].2));
            let is_told = now.duration_since(since) >= self.threshold.hold;
            if is_told && !was_told {
                found.push((key.clone(), value));
            }
            state.holding.push((key, since, was_told || is_told));
        }
        found
    }

    /// Returns the value to compare; `None` if there is none, for example the mean of no values, or a rate at the first check.
    #[expect(clippy::cast_precision_loss, reason = "a rate")]
    fn value(&self, new: &Observation, old: Option<&Observation>, seconds: Option<f64>) -> Option<f64> {
        let count = |seen: &Observation| match seen {
            Observation::Count(count) => *count,
            Observation::Values(values) => values.count(),
        };
        match self.threshold.aggregate {
            Aggregate::Count => Some(count(new) as f64),
            Aggregate::Rate => Some(count(new).saturating_sub(old.map_or(0, count)) as f64 / seconds?),
            aggregate => {
                let Observation::Values(values) = new else { return None };
                let recent = match old {
                    Some(Observation::Values(old)) => values.since(old),
                    // Values from before the first check do not belong to the last second.
                    _ if seconds.is_none() => return None,
                    _ => values.clone(),
                };
                match aggregate {
                    Aggregate::Min => recent.min(),
                    Aggregate::Max => recent.max(),
                    Aggregate::Percentile(percent) => recent.percentile(percent),
                    _ => recent.mean(),
                }
            }
        }
    }

    fn occurrence(when: &TriggerCondition, ((_, event, group), value): (Key, f64)) -> Occurrence {
        let mut occurrence = Occurrence::new(when, process::id(), SystemTime::now());
        occurrence.add("trigger_event", Detail::Text(event));
        if !group.is_empty() {
            occurrence.add("trigger_group", Detail::Text(group.join(", ")));
        }
        occurrence.add("trigger_value", Detail::Text(format!("{value}")));
        occurrence
    }
}

/// Returns the current values of the statistics.
fn seen(statistics: &[LiveStatistic]) -> BTreeMap<Key, Observation> {
    let mut all = BTreeMap::new();
    for one in statistics {
        let Some(statistic) = one.statistic.upgrade() else { continue };
        match statistic.snapshot().results {
            Results::Count(rows) => add(&mut all, one, rows, Observation::Count),
            Results::Histogram(rows) | Results::Latency { durations: rows, .. } => {
                add(&mut all, one, rows, Observation::Values);
            }
            Results::Rate(rate) => drop(all.insert(key(one, Vec::new()), Observation::Count(rate.events))),
            _ => {}
        }
    }
    all
}

fn key(statistic: &LiveStatistic, group: Vec<String>) -> Key {
    (statistic.rule.clone(), statistic.event.clone(), group)
}

fn add<T>(
    all: &mut BTreeMap<Key, Observation>,
    statistic: &LiveStatistic,
    rows: Rows<T>,
    seen: impl Fn(T) -> Observation,
) {
    let groups = rows.groups.into_iter().map(|row| (row.keys.iter().map(ToString::to_string).collect(), row.value));
    let room = MAX.saturating_sub(all.len());
    for (group, value) in rows.all.into_iter().map(|all| (Vec::new(), all)).chain(groups).take(room) {
        all.insert(key(statistic, group), seen(value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use tracepoint_probes::{FieldKind, Moment, Role, Statistic};

    /// A statistic over a field `n`, without groups. A test adds values to it, and checks it at chosen times.
    struct Fixture {
        watch: StatisticWatch,
        statistic: Arc<Statistic>,
        began: Instant,
    }

    impl Fixture {
        fn new(threshold: &str) -> Self {
            let threshold: Threshold = threshold.parse().expect(threshold);
            let statistic = Arc::new(Statistic::new(threshold.statistic.clone(), false).expect("a statistic"));
            let (text, event) = (threshold.statistic.to_string(), "a:b".to_owned());
            let live = LiveStatistic { rule: String::new(), text, event, statistic: Arc::downgrade(&statistic) };
            Self { watch: StatisticWatch::new(threshold, &[live]), statistic, began: Instant::now() }
        }

        fn add(&self, values: impl IntoIterator<Item = u64>) {
            let columns = self.statistic.spec().columns(Role::Observed, "a:b", &[("n", FieldKind::Integer)]);
            for value in values {
                let get = |_| Some(tracepoint_core::field::Value::Unsigned(value));
                self.statistic.record(columns.as_ref().expect("columns"), Moment::recorded(0, 0), get);
            }
        }

        /// Returns the value of the occurrence at this time, if there is one.
        fn look(&self, ms: u64) -> Option<f64> {
            let mut state = self.watch.state.lock().expect("not poisoned");
            let found = self.watch.look_at(&mut state, self.began + Duration::from_millis(ms));
            found.into_iter().next().map(|(_, value)| value)
        }
    }

    #[test]
    fn percentiles_are_those_of_the_last_second() {
        let fixture = Fixture::new("p99 of hist(n) > 50");
        fixture.add([60; 100]);
        assert_eq!(fixture.look(0), None, "they are older than the first look");
        fixture.add([10; 100]);
        assert_eq!(fixture.look(250), None);
        fixture.add([60; 5]);
        assert_eq!(fixture.look(500), Some(60.0));
        assert_eq!((fixture.look(750), fixture.look(1000)), (None, None), "it holds all the time");
        // They are more than a second old: the condition no longer holds, and can begin again.
        assert_eq!((fixture.look(1500), fixture.look(1750)), (None, None));
        fixture.add([63]);
        assert_eq!(fixture.look(2000), Some(63.0));
    }

    #[test]
    fn extremes_are_values_that_occurred() {
        for (threshold, value) in [
            ("max of hist(n) > 100000", 144_868.0),
            ("min of hist(n) > 100000", 103_938.0),
            ("mean of hist(n) > 9", 124_403.0),
        ] {
            let fixture = Fixture::new(threshold);
            fixture.add([103_938; 3]);
            assert_eq!(fixture.look(0), None, "they are older than the first look");
            fixture.add([103_938, 144_868]);
            assert_eq!(fixture.look(250), Some(value), "{threshold}");
        }
        // A single value is computed from the sum, although it is neither the smallest nor the largest of all.
        let fixture = Fixture::new("min of hist(n) > 1");
        fixture.add([0, 1_000_000]);
        assert_eq!(fixture.look(0), None);
        fixture.add([103_938]);
        assert_eq!(fixture.look(250), Some(103_938.0));
    }

    #[test]
    fn a_condition_has_to_hold_without_interruption() {
        let fixture = Fixture::new("rate of count > 100 for 500ms");
        let add = |count: u64| fixture.add(0..count);
        assert_eq!(fixture.look(0), None);
        add(1000);
        assert_eq!((fixture.look(250), fixture.look(500)), (None, None));
        assert!(fixture.look(750).is_some(), "for 500 ms");
        assert_eq!(fixture.look(5000), None, "a rate of 0");
        add(1000);
        assert_eq!(fixture.look(5250), None);
        assert_eq!(fixture.look(8000), None, "interrupted");
        assert_eq!((fixture.look(8250), fixture.look(8750)), (None, None));
    }

    /// Rules that differ in their filters may compute the same statistic of one event.
    #[test]
    fn each_rule_is_looked_at_by_itself() {
        for large in [0, 1] {
            let threshold: Threshold = "max of hist(n) > 50".parse().expect("a threshold");
            let statistic = |_| Arc::new(Statistic::new(threshold.statistic.clone(), false).expect("a statistic"));
            let (text, statistics) = (threshold.statistic.to_string(), [0, 1].map(statistic));
            let live = [0, 1].map(|rule: usize| {
                let (rule, text, statistic) = (rule.to_string(), text.clone(), Arc::downgrade(&statistics[rule]));
                LiveStatistic { rule, text, event: "a:b".to_owned(), statistic }
            });
            let watch = StatisticWatch::new(threshold, &live);
            let mut fixture = Fixture { watch, statistic: Arc::clone(&statistics[0]), began: Instant::now() };
            assert_eq!(fixture.look(0), None);
            for (rule, statistic) in statistics.iter().enumerate() {
                fixture.statistic = Arc::clone(statistic);
                fixture.add([if rule == large { 60 } else { 10 }]);
            }
            assert_eq!(fixture.look(250), Some(60.0), "rule {large}");
        }
    }

    #[test]
    fn counts_are_those_since_the_beginning() {
        let fixture = Fixture::new("count of count > 99");
        fixture.add(0..99);
        assert_eq!(fixture.look(0), None);
        fixture.add(0..1);
        assert_eq!((fixture.look(250), fixture.look(500)), (Some(100.0), None));
    }
}
