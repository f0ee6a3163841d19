//! Counts events, in total and by the value of a field.
//!
//! Each event is counted once in the total and, if a field was given, once more: in the group of its value, as `overflow` if
//! all groups are taken, or as `ungrouped` if it has no value to group by. The two sums come from different counters. They are
//! equal once no thread fires events any more.

mod groups;
mod key;
mod snapshot;

pub use key::GroupKey;
pub use snapshot::{Counts, Group};

use crate::shard;
use crossbeam_utils::CachePadded;
use groups::Groups;
use key::Key;
use std::sync::atomic::{AtomicU64, Ordering};
use tracepoint_core::marker::{Aggregate, FieldView};

/// Counts events.
///
/// Each thread counts in one of several sets of counters (one per processor), so that threads do not contend for cache lines. All
/// memory is allocated by the constructor: about 100 bytes per group, and 8 more per processor.
///
/// One count may observe several markers. A field that it groups by must have the same type in all of them.
#[derive(Debug)]
pub struct Count {
    field: Option<String>,
    groups: Groups,
    tallies: Box<[CachePadded<Tally>]>,
}

/// One set of counters.
#[derive(Debug)]
struct Tally {
    total: AtomicU64,
    overflow: AtomicU64,
    ungrouped: AtomicU64,
    groups: Box<[AtomicU64]>,
}

impl Tally {
    fn new(groups: usize) -> Self {
        Self {
            total: AtomicU64::new(0),
            overflow: AtomicU64::new(0),
            ungrouped: AtomicU64::new(0),
            groups: (0..groups).map(|_| AtomicU64::new(0)).collect(),
        }
    }
}

impl Default for Count {
    fn default() -> Self {
        Self::new()
    }
}

impl Count {
    /// A count of all events.
    pub fn new() -> Self {
        Self::with(None, Groups::none())
    }

    /// A count of all events, and of those with each value of `field`, for up to `max_groups` values besides zero and `false`.
    /// Events with further values are counted together, as `overflow`.
    ///
    /// A group is made when a value is first seen, and never removed. Numbers are compared exactly, texts by a 64-bit hash with a
    /// random key. Arrays and sequences have no groups.
    ///
    /// The closer the number of values comes to `max_groups`, the longer an event takes: in the worst case all groups are
    /// probed.
    pub fn by(field: impl Into<String>, max_groups: usize) -> Self {
        Self::with(Some(field.into()), Groups::new(max_groups))
    }

    fn with(field: Option<String>, groups: Groups) -> Self {
        let tallies = (0..shard::count()).map(|_| CachePadded::new(Tally::new(groups.slots()))).collect();
        Self { field, groups, tallies }
    }

    /// The field whose values are grouped.
    pub fn field(&self) -> Option<&str> {
        self.field.as_deref()
    }

    /// The counters so far. All events that happened before (by a join, or by the end of the subscription) are counted; of events
    /// that fire concurrently, some may be.
    pub fn snapshot(&self) -> Counts {
        let sum = |counter: &dyn Fn(&Tally) -> &AtomicU64| -> u64 {
            self.tallies.iter().map(|tally| counter(tally).load(Ordering::Relaxed)).sum()
        };
        let mut groups: Vec<Group> = (0..self.groups.slots())
            .filter_map(|slot| {
                let count = sum(&|tally| &tally.groups[slot]);
                (count > 0).then(|| Group { key: self.groups.key(slot), count })
            })
            .collect();
        groups.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.key.order(&b.key)));
        Counts {
            total: sum(&|tally| &tally.total),
            groups,
            overflow: sum(&|tally| &tally.overflow),
            ungrouped: sum(&|tally| &tally.ungrouped),
        }
    }
}

impl Aggregate for Count {
    fn observe(&self, _time: u64, event: FieldView<'_>) {
        // The number of tallies is a power of two.
        let tally = &self.tallies[shard::current() & (self.tallies.len() - 1)];
        tally.total.fetch_add(1, Ordering::Relaxed);
        let Some(field) = &self.field else { return };
        let counter = match event.by_name(field).and_then(|value| Key::of(&value)) {
            None => &tally.ungrouped,
            Some(key) => match self.groups.find(&key) {
                Some(slot) => &tally.groups[slot],
                None => &tally.overflow,
            },
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}
