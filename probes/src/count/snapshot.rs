//! What was counted.

use super::key::GroupKey;

/// What a [`Count`](super::Count) counted.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Counts {
    /// All events.
    pub total: u64,
    /// The groups, the largest first; equal ones by their keys. Empty if no field was named.
    pub groups: Vec<Group>,
    /// Events whose value found no room for one more group.
    pub overflow: u64,
    /// Events without the field, or whose field is an array or a sequence.
    pub ungrouped: u64,
}

impl Counts {
    /// The sum of all groups and of what has none: equal to `total` once nothing fires any more, if a field was named.
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
    /// How many events had it.
    pub count: u64,
}
