//! A reorder buffer: events that wait, by time.

use std::collections::BTreeMap;
use tracepoint_reader::Event;

/// The content of a line.
#[derive(Debug)]
pub(super) enum Entry {
    /// An event.
    Event(Event),
    /// A line about losses, with its line feed.
    Note(String),
}

/// Entries by time.
#[derive(Debug, Default)]
pub(super) struct ReorderBuffer {
    /// With their costs, by time and, where that is equal, by arrival.
    entries: BTreeMap<(i64, u64), (usize, Entry)>,
    arrivals: u64,
    cost: usize,
    /// The time of the last entry that was removed.
    last: Option<i64>,
    late: u64,
}

impl ReorderBuffer {
    pub(super) fn push(&mut self, time: i64, cost: usize, entry: Entry) {
        self.arrivals += 1;
        self.cost += cost;
        self.entries.insert((time, self.arrivals), (cost, entry));
    }

    /// Removes the oldest entry.
    pub(super) fn pop(&mut self) -> Option<Entry> {
        let ((time, _), (cost, entry)) = self.entries.pop_first()?;
        self.cost -= cost;
        if self.last.is_some_and(|last| time < last) {
            self.late += u64::from(matches!(entry, Entry::Event(_)));
        } else {
            self.last = Some(time);
        }
        Some(entry)
    }

    /// Removes the oldest entry, if it is not after `until`.
    pub(super) fn pop_until(&mut self, until: i64) -> Option<Entry> {
        let ((oldest, _), _) = self.entries.first_key_value()?;
        if *oldest <= until { self.pop() } else { None }
    }

    /// The memory of all entries, in bytes.
    pub(super) const fn cost(&self) -> usize {
        self.cost
    }

    /// The number of entries.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The number of events that were removed after a later one.
    pub(super) const fn late(&self) -> u64 {
        self.late
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(order: &mut ReorderBuffer) -> String {
        let mut all = String::new();
        while let Some(Entry::Note(text)) = order.pop() {
            all.push_str(&text);
        }
        all
    }

    #[test]
    fn events_leave_by_time_and_equal_times_keep_their_order() {
        let mut order = ReorderBuffer::default();
        for (time, text) in [(3, "d"), (1, "a"), (2, "b"), (2, "c")] {
            order.push(time, 10, Entry::Note(text.to_owned()));
        }
        assert_eq!((order.cost(), order.len()), (40, 4));
        assert_eq!(texts(&mut order), "abcd");
        assert_eq!(order.cost(), 0);
    }
}
