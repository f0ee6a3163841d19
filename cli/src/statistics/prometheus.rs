//! Statistics as metrics for Prometheus.
//!
//! | metric | labels | of |
//! |---|---|---|
//! | `tracepoint_events_total` | `event`, fields | counts, rates |
//! | `tracepoint_values_bucket`, `_sum`, `_count` | `statistic`, fields | histograms of a field, in its own unit |
//! | `tracepoint_latency_seconds_bucket`, `_sum`, `_count` | `statistic`, fields | latencies |
//! | `tracepoint_operations_total` | `statistic`, `result` | the beginnings and ends of a latency that give no duration |
//! | `tracepoint_operations_in_flight` | `statistic` | a latency |
//! | `tracepoint_events_lost_total` | | the events that are missing |
//!
//! What running programs compute has the label `filter` where a rule has one, and that of an event the label `event`. The bounds of buckets are powers of two (of a nanosecond for latencies), so that they are the same at each scrape. `_sum` is
//! exact.

use std::collections::HashMap;
use tracepoint_collector::prometheus::{Family, Kind, Metrics};
use tracepoint_probes::StatisticSpec;
use tracepoint_probes::snapshot::{Distribution, Operations, Results, Rows};

/// The results of a statistic.
pub(super) struct Source<'a> {
    /// The event that it is of; empty: of several.
    pub(super) event: &'a str,
    /// As rules of sessions name it.
    pub(super) statistic: &'a str,
    /// That of its rule.
    pub(super) filter: Option<&'a str>,
    pub(super) results: &'a Results,
}

/// The metrics of statistics, and how many events are missing in their source.
pub(super) fn metrics(sources: &[Source<'_>], lost: Option<u64>) -> Metrics {
    let mut metrics = Metrics::default();
    let merge = |own: &mut Distribution, other: &Distribution| own.merge(other.clone());
    let distributions = |is_latency: bool| {
        sources.iter().filter_map(move |source| match &source.results {
            Results::Histogram(rows) if !is_latency => Some((source, rows)),
            Results::Latency { durations, .. } if is_latency => Some((source, durations)),
            _ => None,
        })
    };
    if sources.iter().any(|source| matches!(source.results, Results::Count(_) | Results::Rate(_))) {
        let mut family = metrics.family(Kind::Counter, "tracepoint_events_total", "Events that were counted.");
        for source in sources {
            match &source.results {
                Results::Count(rows) => {
                    let add = |own: &mut u64, other: &u64| *own = own.saturating_add(*other);
                    source.each(rows, false, add, |labels, count| family.sample("", labels, count));
                }
                Results::Rate(rate) => family.sample("", &source.labels(false), rate.events),
                _ => {}
            }
        }
    }
    if distributions(false).next().is_some() {
        let help = "How the values of a field are distributed.";
        let mut family = metrics.family(Kind::Histogram, "tracepoint_values", help);
        for (source, rows) in distributions(false) {
            source.each(rows, true, merge, |labels, values| histogram(&mut family, labels, values, false));
        }
    }
    if distributions(true).next().is_some() {
        let help = "The time from one event to the other one.";
        let mut family = metrics.family(Kind::Histogram, "tracepoint_latency_seconds", help);
        for (source, rows) in distributions(true) {
            source.each(rows, true, merge, |labels, values| histogram(&mut family, labels, values, true));
        }
        operations(sources, &mut metrics);
    }
    if let Some(lost) = lost {
        let help = "Events that are missing in the traces, selected ones or others.";
        metrics.family(Kind::Counter, "tracepoint_events_lost_total", help).sample("", &[], lost);
    }
    metrics
}

fn operations(sources: &[Source<'_>], metrics: &mut Metrics) {
    let all = || {
        sources.iter().filter_map(|source| match &source.results {
            Results::Latency { operations, .. } => Some((source.labels(true), operations)),
            _ => None,
        })
    };
    let help = "Beginnings that were forgotten or found no room, and ends without a beginning.";
    let mut family = metrics.family(Kind::Counter, "tracepoint_operations_total", help);
    for (labels, Operations { replaced, no_room, unmatched, .. }) in all() {
        for (result, count) in [("replaced", replaced), ("no_room", no_room), ("unmatched", unmatched)] {
            family.sample("", &[labels.as_slice(), &[("result", result)]].concat(), count);
        }
    }
    let help = "Operations that have begun and not ended.";
    let mut family = metrics.family(Kind::Gauge, "tracepoint_operations_in_flight", help);
    for (labels, operations) in all() {
        family.sample("", &labels, operations.in_flight);
    }
}

impl<'a> Source<'a> {
    /// The labels of all its samples.
    fn labels(&self, is_named: bool) -> Vec<(&'a str, &'a str)> {
        let event = (!self.event.is_empty()).then_some(("event", self.event));
        let statistic = is_named.then_some(("statistic", self.statistic));
        event.into_iter().chain(statistic).chain(self.filter.map(|filter| ("filter", filter))).collect()
    }

    /// Gives each row with its labels: the event, the statistic if it `is_named`, and the fields of the group. What found no room as a group, and
    /// what has no group, are rows with a label of their own. Groups whose values read alike, such as a number and its text, are one sample.
    fn each<T: Clone>(
        &self,
        rows: &Rows<T>,
        is_named: bool,
        merge: impl Fn(&mut T, &T),
        mut add: impl FnMut(&[(&str, &str)], &T),
    ) {
        let common = self.labels(is_named);
        let spec = self.statistic.parse::<StatisticSpec>();
        let fields: Vec<String> = spec.map(|spec| spec.group_fields().to_vec()).unwrap_or_default();
        // A field may have the name of a label.
        let is_taken = |name: &str| ["group", "le"].contains(&name) || common.iter().any(|(label, _)| *label == name);
        let label = |index: usize| match fields.get(index) {
            Some(name) if is_taken(name) => format!("field_{name}"),
            Some(name) => name.clone(),
            None => format!("key{index}"),
        };
        let mut places: HashMap<Vec<String>, usize> = HashMap::new();
        let mut groups: Vec<(Vec<String>, T)> = Vec::new();
        for row in &rows.groups {
            let texts: Vec<_> = row.keys.iter().map(ToString::to_string).collect();
            let place = *places.entry(texts.clone()).or_insert(groups.len());
            match groups.get_mut(place) {
                Some((_, value)) => merge(value, &row.value),
                None => groups.push((texts, row.value.clone())),
            }
        }
        for (texts, value) in &groups {
            let keys: Vec<_> = texts.iter().enumerate().map(|(index, text)| (label(index), text)).collect();
            let keys = keys.iter().map(|(name, text)| (name.as_str(), text.as_str()));
            add(&common.iter().copied().chain(keys).collect::<Vec<_>>(), value);
        }
        if let Some(all) = &rows.all {
            add(&common, all);
        }
        for (group, value) in [("further", &rows.overflow), ("none", &rows.ungrouped)] {
            if let Some(value) = value {
                add(&[common.as_slice(), &[("group", group)]].concat(), value);
            }
        }
    }
}

/// The samples of a histogram: cumulative counts at powers of two, from the one below all values that are not 0 to the one above all.
#[expect(clippy::cast_possible_truncation, reason = "the exponent of a number")]
fn histogram(family: &mut Family<'_>, labels: &[(&str, &str)], values: &Distribution, is_latency: bool) {
    let per_unit = if is_latency { 1e9 } else { 1.0 };
    let mut bucket = |bound: &str, count: u64| {
        family.sample("_bucket", &[labels, &[("le", bound)]].concat(), count);
    };
    let first = values.buckets().find(|part| part.from > 0.0).map_or(1.0, |part| part.from);
    let last = values.buckets().filter(|part| part.to.is_finite()).last().map_or(1.0, |part| part.to);
    for exponent in first.log2().floor() as i32..=last.log2().ceil() as i32 {
        let bound = 2_f64.powi(exponent);
        // `le` includes its bound, and a bucket of integers does not include its upper one.
        let included = if values.is_of_integers() && bound < 2_f64.powi(53) { bound - 1.0 } else { bound };
        bucket(&(included / per_unit).to_string(), values.at_most(included));
    }
    bucket("+Inf", values.count());
    match values.integer_sum().filter(|_| !is_latency) {
        Some(sum) => family.sample("_sum", labels, sum),
        None => family.sample("_sum", labels, values.sum() / per_unit),
    }
    family.sample("_count", labels, values.count());
}
