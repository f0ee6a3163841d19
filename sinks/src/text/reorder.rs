//! A reorder buffer for waiting events, by time.
//!
//! Events arrive packet by packet, in order within each packet. So a packet is a run, and only the oldest entries of the runs are compared. The run
//! with the oldest entry of all is kept separately, and provides entries until another one is older.

use std::collections::BTreeMap;
use std::vec::IntoIter;
use tracepoint_reader::Event;

/// The content of a line.
#[derive(Debug)]
pub(super) enum Entry {
    /// An event.
    Event(Event),
    /// A line about losses, with its line feed.
    Note(String),
}

/// The time and the arrival number of a run's oldest entry.
type Key = (i64, u64);

/// Entries in the order of their times, all with the same cost.
#[derive(Debug)]
struct Run {
    first: (i64, Entry),
    rest: IntoIter<(i64, Entry)>,
    arrival: u64,
    cost: usize,
}

/// Entries by time and, if that is equal, by arrival.
#[derive(Debug, Default)]
pub(super) struct ReorderBuffer {
    /// The run that provides the next entries, unless another one is older by now.
    current: Option<Run>,
    others: BTreeMap<Key, Run>,
    arrivals: u64,
    len: usize,
    cost: usize,
    /// The time of the last entry that was removed.
    last: Option<i64>,
    late: u64,
}

impl Run {
    const fn key(&self) -> Key {
        (self.first.0, self.arrival)
    }
}

impl ReorderBuffer {
    pub(super) fn push(&mut self, time: i64, cost: usize, entry: Entry) {
        self.push_all(vec![(time, entry)], cost);
    }

    /// Adds entries with their times, each with this cost. They should be in order; any that are not form runs of their own.
    pub(super) fn push_all(&mut self, mut entries: Vec<(i64, Entry)>, cost: usize) {
        self.len += entries.len();
        self.cost += cost * entries.len();
        if let Some(current) = self.current.take() {
            self.others.insert(current.key(), current);
        }
        while !entries.is_empty() {
            let turn = entries.windows(2).position(|pair| pair[1].0 < pair[0].0).map_or(entries.len(), |last| last + 1);
            let mut run = std::mem::take(&mut entries);
            entries = run.split_off(turn);
            let mut rest = run.into_iter();
            self.arrivals += 1;
            if let Some(first) = rest.next() {
                let run = Run { first, rest, arrival: self.arrivals, cost };
                self.others.insert(run.key(), run);
            }
        }
    }

    /// Returns the run with the oldest entry.
    fn oldest(&mut self) -> Option<Run> {
        let limit = self.others.first_key_value().map(|(key, _)| *key);
        match self.current.take() {
            Some(current) if limit.is_none_or(|limit| current.key() < limit) => Some(current),
            current => {
                let (_, oldest) = self.others.pop_first()?;
                self.others.extend(current.map(|current| (current.key(), current)));
                Some(oldest)
            }
        }
    }

    /// Removes the oldest entry.
    pub(super) fn pop(&mut self) -> Option<Entry> {
        self.pop_until(i64::MAX)
    }

    /// Removes the oldest entry, if it is not after `until`.
    pub(super) fn pop_until(&mut self, until: i64) -> Option<Entry> {
        let run = self.oldest()?;
        if run.first.0 > until {
            self.current = Some(run);
            return None;
        }
        let Run { first: (time, entry), mut rest, arrival, cost } = run;
        self.current = rest.next().map(|first| Run { first, rest, arrival, cost });
        (self.len, self.cost) = (self.len - 1, self.cost - cost);
        if self.last.is_some_and(|last| time < last) {
            self.late += u64::from(matches!(entry, Entry::Event(_)));
        } else {
            self.last = Some(time);
        }
        Some(entry)
    }

    /// Returns the memory of all entries, in bytes.
    pub(super) const fn cost(&self) -> usize {
        self.cost
    }

    /// Returns the number of entries.
    pub(super) const fn len(&self) -> usize {
        self.len
    }

    /// Returns the number of events that were removed after a later one.
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

    fn notes(entries: &[(i64, &str)]) -> Vec<(i64, Entry)> {
        entries.iter().map(|(time, text)| (*time, Entry::Note((*text).to_owned()))).collect()
    }

    #[test]
    fn events_leave_by_time_and_equal_times_keep_their_order() {
        let mut order = ReorderBuffer::default();
        for (time, text) in [(3, "d"), (1, "a"), (2, "b"), (2, "c")] {
            order.push(time, 10, Entry::Note(text.to_owned()));
        }
        assert_eq!((order.cost(), order.len()), (40, 4));
        assert_eq!(texts(&mut order), "abcd");
        assert_eq!((order.cost(), order.len()), (0, 0));
    }

    #[test]
    fn runs_are_merged_also_those_that_come_later_and_those_out_of_order() {
        let mut order = ReorderBuffer::default();
        order.push_all(notes(&[(1, "a"), (4, "d"), (4, "e"), (9, "i")]), 1);
        order.push_all(notes(&[(4, "f"), (3, "c"), (8, "h")]), 2);
        assert_eq!((order.cost(), order.len()), (10, 7));
        assert!(matches!(order.pop_until(3), Some(Entry::Note(text)) if text == "a"));
        order.push_all(notes(&[(2, "b"), (5, "g")]), 1);
        assert!(order.pop_until(1).is_none());
        assert_eq!((texts(&mut order).as_str(), order.late()), ("bcdefghi", 0));
        assert_eq!((order.cost(), order.len()), (0, 0));
        order.push_all(notes(&[(1, "late")]), 1);
        assert_eq!(texts(&mut order), "late");
    }
}
