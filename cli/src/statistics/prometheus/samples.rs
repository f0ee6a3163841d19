//! The samples of a metric, one for the same labels.

use std::collections::HashMap;
use tracepoint_collector::prometheus::{label_name, label_value};
use tracepoint_probes::snapshot::Results;

/// The results of a statistic.
pub(in crate::statistics) struct Source<'a> {
    /// The event that it is of; empty: of several.
    pub(in crate::statistics) event: &'a str,
    /// As rules of sessions name it.
    pub(in crate::statistics) statistic: &'a str,
    /// The fields that group its events.
    pub(in crate::statistics) fields: Vec<String>,
    /// That of its rule.
    pub(in crate::statistics) filter: Option<&'a str>,
    pub(in crate::statistics) results: &'a Results,
}

impl Source<'_> {
    fn is_of_same_events(&self, other: &Self) -> bool {
        (self.event, self.filter) == (other.event, other.filter)
    }
}

/// Names and values as they are written.
pub(super) type Labels = Vec<(String, String)>;

pub(super) fn label(name: &str, text: &str) -> (String, String) {
    (label_name(name), label_value(text).into_owned())
}

/// Samples by their labels.
pub(super) struct Samples<'s, T> {
    samples: Vec<Sample<'s, T>>,
    /// By their labels in the order of their names: Prometheus does not distinguish other orders.
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
    /// Adds a value. Where there is a sample with these labels, they are of values that read alike, such as a number and its text, and are merged;
    /// but those of another statistic of the same events, such as their count and their rate, are left out.
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

    /// Gives each sample.
    pub(super) fn each(&self, mut write: impl FnMut(&[(&str, &str)], &T)) {
        for Sample { labels, value, .. } in &self.samples {
            write(&labels.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect::<Vec<_>>(), value);
        }
    }
}
