//! Results by group.

use crate::key::GroupKey;
use serde::Serialize;
use std::cmp::Ordering;
use std::collections::HashMap;

/// Results: one for all events, or one per group.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Rows<T> {
    /// The result for all events, if the statistic has no groups.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub all: Option<T>,
    /// Number of grouped events, including overflow and ungrouped ones, from a separate counter. Once no more events fire, it equals the sum over
    /// the rows.
    pub events: u64,
    /// The groups with events, unordered.
    pub groups: Vec<Row<T>>,
    /// Events whose group found no room.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overflow: Option<T>,
    /// Events without a key, because the field is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ungrouped: Option<T>,
}

/// The result of a group.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Row<T> {
    /// The values of the fields that group the events.
    pub keys: Vec<GroupKey>,
    /// The result.
    pub value: T,
}

impl<T> Row<T> {
    fn by_rank(&self, other: &Self, rank: impl Fn(&T) -> u64) -> Ordering {
        rank(&other.value).cmp(&rank(&self.value)).then_with(|| self.keys.cmp(&other.keys))
    }
}

impl Rows<u64> {
    /// Counts by the value of one field.
    pub fn counted(groups: impl IntoIterator<Item = (GroupKey, u64)>) -> Self {
        let groups = groups.into_iter().map(|(key, value)| Row { keys: vec![key], value });
        let groups: Vec<_> = groups.collect();
        let events = groups.iter().map(|row| row.value).sum();
        Self { events, groups, ..Self::default() }
    }
}

impl<T> Rows<T> {
    /// All results: the result for all events; or the results of the groups, of the overflow, and of the ungrouped events.
    pub fn values(&self) -> impl Iterator<Item = &T> {
        let groups = self.groups.iter().map(|row| &row.value);
        self.all.iter().chain(groups).chain(&self.overflow).chain(&self.ungrouped)
    }

    /// Sorts the groups: the one with the largest `rank` first, equal ones by their keys.
    pub fn sort_by_rank(&mut self, rank: impl Fn(&T) -> u64) {
        self.groups.sort_by(|a, b| a.by_rank(b, &rank));
    }

    /// The groups in the order of [`sort_by_rank`](Self::sort_by_rank).
    pub fn ranked(&self, rank: impl Fn(&T) -> u64) -> Vec<&Row<T>> {
        let mut groups: Vec<_> = self.groups.iter().collect();
        groups.sort_by(|a, b| a.by_rank(b, &rank));
        groups
    }

    pub(crate) fn merge(&mut self, other: Self, add: impl Fn(&mut T, T)) {
        let add_option = |own: &mut Option<T>, other: Option<T>| match (own, other) {
            (Some(own), Some(other)) => add(own, other),
            (own @ None, other) => *own = other,
            (Some(_), None) => {}
        };
        add_option(&mut self.all, other.all);
        add_option(&mut self.overflow, other.overflow);
        add_option(&mut self.ungrouped, other.ungrouped);
        self.events = self.events.saturating_add(other.events);
        let mut places: HashMap<Vec<GroupKey>, usize> =
            self.groups.iter().enumerate().map(|(at, row)| (row.keys.clone(), at)).collect();
        for row in other.groups {
            let at = *places.entry(row.keys.clone()).or_insert(self.groups.len());
            match self.groups.get_mut(at) {
                Some(own) => add(&mut own.value, row.value),
                None => self.groups.push(row),
            }
        }
    }
}
