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
//! Metrics of running programs have the label `filter` if the rule has a filter, and the label `event` if they are of one event. The bounds of
//! buckets are powers of two (of a nanosecond for latencies), so that they are the same at each scrape. `_sum` is exact.

mod samples;

pub(super) use samples::Source;
use samples::{Labels, Samples, label};
use tracepoint_collector::prometheus::{Family, Kind, Metrics, label_name, label_value};
use tracepoint_probes::StatisticSpec;
use tracepoint_probes::snapshot::{Distribution, Operations, Results, Rows};

/// The fields that group the events of a rule's statistic.
pub(super) fn fields_of(statistic: &str) -> Vec<String> {
    statistic.parse::<StatisticSpec>().map(|spec| spec.group_fields().to_vec()).unwrap_or_default()
}

/// The metrics of statistics, and the number of events missing in their source.
pub(super) fn metrics(sources: &[Source<'_>], lost: Option<u64>) -> Metrics {
    let mut metrics = Metrics::default();
    let mut counts = Samples::default();
    let mut distributions = [Samples::default(), Samples::default()];
    for source in sources {
        let [values, durations] = &mut distributions;
        match &source.results {
            Results::Count(rows) => source.each(rows, false, |labels, count| counts.add(source, labels, *count, add)),
            Results::Rate(rate) => counts.add(source, source.labels(false), rate.events, add),
            Results::Histogram(rows) => {
                source.each(rows, true, |labels, row| values.add(source, labels, row.clone(), Distribution::merge));
            }
            Results::Latency { durations: rows, .. } => {
                source.each(rows, true, |labels, row| durations.add(source, labels, row.clone(), Distribution::merge));
            }
            _ => {}
        }
    }
    let [values, durations] = distributions;
    if sources.iter().any(|source| matches!(source.results, Results::Count(_) | Results::Rate(_))) {
        let mut family = metrics.family(Kind::Counter, "tracepoint_events_total", "Events that were counted.");
        counts.each(|labels, count| family.sample("", labels, count));
    }
    if sources.iter().any(|source| matches!(source.results, Results::Histogram(_))) {
        let help = "How the values of a field are distributed.";
        let mut family = metrics.family(Kind::Histogram, "tracepoint_values", help);
        values.each(|labels, values| histogram(&mut family, labels, values, false));
    }
    if sources.iter().any(|source| matches!(source.results, Results::Latency { .. })) {
        let help = "The time from one event to the other one.";
        let mut family = metrics.family(Kind::Histogram, "tracepoint_latency_seconds", help);
        durations.each(|labels, values| histogram(&mut family, labels, values, true));
        operations(sources, &mut metrics);
    }
    if let Some(lost) = lost {
        let help = "Events that are missing in the traces, selected ones or others.";
        metrics.family(Kind::Counter, "tracepoint_events_lost_total", help).sample("", &[], lost);
    }
    metrics
}

fn add(own: &mut u64, other: u64) {
    *own = own.saturating_add(other);
}

fn operations(sources: &[Source<'_>], metrics: &mut Metrics) {
    let (mut ended, mut in_flight) = (Samples::default(), Samples::default());
    for source in sources {
        let Results::Latency { operations, .. } = &source.results else { continue };
        let Operations { replaced, no_room, unmatched, .. } = operations;
        for (result, count) in [("replaced", replaced), ("no_room", no_room), ("unmatched", unmatched)] {
            let labels = source.labels(true).into_iter().chain([label("result", result)]).collect();
            ended.add(source, labels, *count, add);
        }
        in_flight.add(source, source.labels(true), operations.in_flight, add);
    }
    let help = "Beginnings that were forgotten or found no room, and ends without a beginning.";
    let mut family = metrics.family(Kind::Counter, "tracepoint_operations_total", help);
    ended.each(|labels, count| family.sample("", labels, count));
    let help = "Operations that have begun and not ended.";
    let mut family = metrics.family(Kind::Gauge, "tracepoint_operations_in_flight", help);
    in_flight.each(|labels, count| family.sample("", labels, count));
}

impl Source<'_> {
    /// The labels common to all its samples.
    fn labels(&self, is_named: bool) -> Labels {
        let event = (!self.event.is_empty()).then_some(("event", self.event));
        let statistic = is_named.then_some(("statistic", self.statistic));
        let labels = event.into_iter().chain(statistic).chain(self.filter.map(|filter| ("filter", filter)));
        labels.map(|(name, text)| label(name, text)).collect()
    }

    /// Passes each row with its labels: the event, the statistic if it `is_named`, and the fields of the group. Events beyond the maximum number of
    /// groups, and events without a group, are rows with a label of their own.
    fn each<T>(&self, rows: &Rows<T>, is_named: bool, mut add: impl FnMut(Labels, &T)) {
        let common = self.labels(is_named);
        let names = field_labels(&self.fields, &common);
        for row in &rows.groups {
            let name = |index: usize| names.get(index).cloned().unwrap_or_else(|| format!("key{index}"));
            let keys = row.keys.iter().enumerate();
            let keys = keys.map(|(index, key)| (name(index), label_value(&key.to_string()).into_owned()));
            add(common.iter().cloned().chain(keys).collect(), &row.value);
        }
        if let Some(all) = &rows.all {
            add(common.clone(), all);
        }
        for (group, value) in [("further", &rows.overflow), ("none", &rows.ungrouped)] {
            if let Some(value) = value {
                add(common.iter().cloned().chain([label("group", group)]).collect(), value);
            }
        }
    }
}

/// The label names of fields, made unique: a field may have the name of another label, and several names may map to the same label, such as `a.b` and
/// `a_b`.
fn field_labels(fields: &[String], common: &Labels) -> Vec<String> {
    let mut names: Vec<String> = Vec::with_capacity(fields.len());
    for field in fields {
        let mut name = label_name(field);
        while ["group", "le"].contains(&&*name)
            || common.iter().any(|(known, _)| *known == name)
            || names.contains(&name)
        {
            name.insert_str(0, "field_");
        }
        names.push(name);
    }
    names
}

/// The samples of a histogram: cumulative counts at powers of two that enclose all values other than 0.
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
        // `le` includes its bound, whereas a bucket of integers excludes its upper one.
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

#[cfg(test)]
mod tests {
    use super::{Source, metrics};
    use tracepoint_probes::GroupKey;
    use tracepoint_probes::snapshot::{Results, Rows};

    fn source<'a>(event: &'a str, by: &[&str], results: &'a Results) -> Source<'a> {
        let fields = by.iter().map(ToString::to_string).collect();
        Source { event, statistic: "count", fields, filter: None, results }
    }

    fn counts(keys: &[&[&str]]) -> Results {
        let mut rows = Rows::counted(keys.iter().map(|_| (text(""), 1)));
        for (row, keys) in rows.groups.iter_mut().zip(keys) {
            row.keys = keys.iter().map(|key| text(key)).collect();
        }
        Results::Count(rows)
    }

    fn text(text: &str) -> GroupKey {
        GroupKey::Text { text: text.to_owned(), whole: true }
    }

    /// The samples, without metadata lines.
    fn samples(sources: &[Source<'_>]) -> Vec<String> {
        let text = metrics(sources, None).into_text();
        text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect()
    }

    #[test]
    fn texts_that_are_written_alike_are_one_sample() {
        let results = counts(&[&["\u{1b}"], &["\\u{1b}"], &["b"]]);
        let of = |event| source(event, &["v"], &results);
        let counted = samples(&[of("")]);
        assert_eq!(counted, [r#"tracepoint_events_total{v="\\u{1b}"} 2"#, r#"tracepoint_events_total{v="b"} 1"#]);
        let of_events = samples(&[of("e\u{7f}"), of("e\\u{7f}")]);
        assert_eq!(of_events[0], r#"tracepoint_events_total{event="e\\u{7f}",v="\\u{1b}"} 4"#);
        assert_eq!(of_events.len(), 2);
    }

    #[test]
    fn the_same_events_are_counted_once() {
        let (one, other) = (counts(&[&["x", "y"]]), counts(&[&["y", "x"]]));
        let counted = samples(&[source("e", &["a", "b"], &one), source("e", &["b", "a"], &other)]);
        assert_eq!(counted, [r#"tracepoint_events_total{event="e",a="x",b="y"} 1"#]);
    }

    #[test]
    fn names_of_labels_are_unique() {
        let results = counts(&[&["1", "2"]]);
        for (by, expected) in [
            (["a.b", "a_b"], ["event", "a_b", "field_a_b"]),
            (["field_event", "event"], ["event", "field_event", "field_field_event"]),
            (["le", "group"], ["event", "field_le", "field_group"]),
        ] {
            let counted = samples(&[source("e", &by, &results)]);
            let labels = counted[0].split('{').nth(1).unwrap_or_default();
            let names: Vec<_> = labels.split(',').filter_map(|label| label.split('=').next()).collect();
            assert_eq!(names, expected);
        }
    }
}
