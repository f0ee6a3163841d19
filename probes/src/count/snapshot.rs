//! The result of a count.

use super::key::GroupKey;

/// The counters of a [`Count`](super::Count).
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Counts {
    /// All events.
    pub total: u64,
    /// The groups, the largest first, and equal ones by their keys. Empty if no field was given.
    pub groups: Vec<Group>,
    /// Events whose value has no group, because all were taken.
    pub overflow: u64,
    /// Events without the field, or whose field is an array or a sequence.
    pub ungrouped: u64,
}

impl Counts {
    /// The sum of all groups, `overflow` and `ungrouped`. If a field was given, it equals `total` once no thread fires events.
    pub fn accounted(&self) -> u64 {
        self.groups.iter().map(|group| group.count).sum::<u64>() + self.overflow + self.ungrouped
    }
}

/// The events with one value of the field.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Group {
    /// The value.
    pub key: GroupKey,
    /// The number of events with it.
    pub count: u64,
}
