//! The samples of a metric, at most one for each set of labels.

use std::collections::HashMap;
use tracepoint_collector::prometheus::{label_name, label_value};
use tracepoint_probes::snapshot::Results;

/// The results of a statistic.
pub(in crate::statistics) struct Source<'a> {
    /// The event; empty if there are several.
    pub(in crate::statistics) event: &'a str,
    /// The statistic in the syntax of rules.
    pub(in crate::statistics) statistic: &'a str,
    /// The fields that group its events.
    pub(in crate::statistics) fields: Vec<String>,
    /// The filter of its rule.
    pub(in crate::statistics) filter: Option<&'a str>,
    pub(in crate::statistics) results: &'a Results,
}

impl Source<'_> {
    fn is_of_same_events(&self, other: &Self) -> bool {
        (self.event, self.filter) == (other.event, other.filter)
    }
}

/// Names and values, unescaped.
pub(super) type Labels = Vec<(String, String)>;

pub(super) fn label(name: &str, text: &str) -> (String, String) {
    (label_name(name), label_value(text).into_owned())
}

/// Samples indexed by their labels.
pub(super) struct Samples<'s, T> {
    samples: Vec<Sample<'s, T>>,
    /// Indices by sorted labels: Prometheus ignores the order of labels.
    places: HashMap<Labels, usize>,
}

struct Sample<'s, T> {
    source: &'s Source<'s>,
    labels: Labels,
    value: T,
}

impl<T> Default for Samples<'_, T> {
    fn default() -> Self {
        Self { samples: Vec::new(), places: HashMap::new() }
    }
}

impl<'s, T> Samples<'s, T> {
    /// Adds a value. If there is a sample with these labels, the value is merged into it: different field values may have the same text, such as a
    /// number and its text form. A value of another statistic of the same events, such as a rate next to a count, is left out instead.
    pub(super) fn add(&mut self, source: &'s Source<'s>, labels: Labels, value: T, merge: impl Fn(&mut T, T)) {
        let mut key = labels.clone();
        key.sort_unstable();
        let place = *self.places.entry(key).or_insert(self.samples.len());
        match self.samples.get_mut(place) {
            Some(known) if std::ptr::eq(known.source, source) || !known.source.is_of_same_events(source) => {
                merge(&mut known.value, value);
            }
            Some(_) => {}
            None => self.samples.push(Sample { source, labels, value }),
        }
    }

    /// Passes each sample to `write`.
    pub(super) fn each(&self, mut write: impl FnMut(&[(&str, &str)], &T)) {
        for Sample { labels, value, .. } in &self.samples {
            write(&labels.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect::<Vec<_>>(), value);
        }
    }
}
