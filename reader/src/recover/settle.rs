//! Settles the counters of one ring with what is committed.
//!
//! A thread that is killed leaves, for each level of signal handlers, at most one event between two of its counters. Fired is
//! counted first, so each such event is seen as one that fired and of which nothing else is known. If it was committed, it
//! counts as recorded; else it was killed.

use super::stream::Decoded;
use crate::ring::EventCounters;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// What became of one event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Settled {
    /// Committed.
    pub(crate) recorded: u64,
    /// Fired, and nothing else.
    pub(crate) killed: u64,
}

/// The books of one ring.
#[derive(Debug, Default)]
pub(crate) struct Books {
    /// What was counted of each event.
    pub(crate) counted: Vec<EventCounters>,
    /// By the same index.
    pub(crate) settled: Vec<Settled>,
    /// Committed, and not yet counted as recorded.
    pub(crate) uncounted: u64,
    /// Fired, and nothing else.
    pub(crate) killed: u64,
    /// All losses before the ring, those that were killed included.
    pub(crate) lost: u64,
    /// What cannot be.
    pub(crate) flaws: Vec<String>,
}

impl Books {
    /// The books of a ring that is being written: what its counters say.
    pub(crate) fn running(counted: Vec<EventCounters>) -> Self {
        let settled = counted.iter().map(|event| Settled { recorded: event.recorded, killed: 0 }).collect();
        Self { counted, settled, ..Self::default() }
    }

    /// The same of a ring whose owner runs: what is in between two counters will be in the next.
    pub(crate) fn without_killed(mut self) -> Self {
        self.settled.iter_mut().for_each(|event| event.killed = 0);
        self.lost = self.lost.saturating_sub(std::mem::take(&mut self.killed));
        self
    }

    /// Settles `counted`, by event id, with the `committed` records of the ring, of which some were `decoded`.
    pub(crate) fn settle(counted: Vec<EventCounters>, decoded: &BTreeMap<u64, Decoded>, committed: u64) -> Self {
        let mut books = Self::default();
        let decoded_of = |id: usize| decoded.get(&(id as u64)).copied().unwrap_or_default();
        // What fired and has no outcome yet; negative where counters contradict each other.
        let mut pending: Vec<i128> = counted.iter().map(pending).collect();
        // What can be decoded was committed, whether it is counted or not.
        for (id, counters) in counted.iter().enumerate() {
            let recorded = counters.recorded.max(decoded_of(id).count);
            pending[id] -= i128::from(recorded - counters.recorded);
            books.uncounted = books.uncounted.saturating_add(recorded - counters.recorded);
            books.settled.push(Settled { recorded, killed: 0 });
        }
        let mut missing =
            i128::from(committed) - books.settled.iter().map(|event| i128::from(event.recorded)).sum::<i128>();
        // What is gone cannot say which event it was: one that was in between, the one that was recorded last first.
        let mut candidates: Vec<usize> = (0..counted.len()).filter(|id| pending[*id] > 0).collect();
        candidates.sort_by_key(|id| Reverse(decoded_of(*id).last));
        for id in candidates {
            let given = u64::try_from(missing.min(pending[id])).unwrap_or(0);
            missing -= i128::from(given);
            pending[id] -= i128::from(given);
            books.settled[id].recorded += given;
            books.uncounted = books.uncounted.saturating_add(given);
        }
        if missing != 0 {
            let (more, less) = if missing > 0 { ("streams", "events") } else { ("events", "streams") };
            let count = missing.unsigned_abs();
            books.flaws.push(format!("its {more} count {count} more records than its {less}"));
        }
        for (id, pending) in pending.into_iter().enumerate() {
            match u64::try_from(pending) {
                Ok(killed) => books.settled[id].killed = killed,
                Err(_) => books.flaws.push(format!("event {id} has more outcomes than it fired")),
            }
        }
        let sum = |numbers: &mut dyn Iterator<Item = u64>| numbers.fold(0, u64::saturating_add);
        books.killed = sum(&mut books.settled.iter().map(|event| event.killed));
        books.lost = sum(&mut counted.iter().flat_map(|event| event.lost)).saturating_add(books.killed);
        books.counted = counted;
        books
    }
}

fn pending(event: &EventCounters) -> i128 {
    let spent = [event.recorded, event.filtered, event.suppressed].into_iter().chain(event.lost);
    i128::from(event.fired) - spent.map(i128::from).sum::<i128>()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counters(fired: u64, recorded: u64, lost: u64) -> EventCounters {
        let mut counters = EventCounters::default();
        [counters.fired, counters.recorded, counters.lost[0]] = [fired, recorded, lost];
        counters
    }

    fn decoded(counts: &[(u64, u64, u64)]) -> BTreeMap<u64, Decoded> {
        counts.iter().map(|(id, count, last)| (*id, Decoded { count: *count, last: *last })).collect()
    }

    fn settled(books: &Books) -> Vec<(u64, u64)> {
        books.settled.iter().map(|event| (event.recorded, event.killed)).collect()
    }

    #[test]
    fn what_was_committed_counts_as_recorded() {
        let books = Books::settle(vec![counters(5, 4, 0), counters(3, 2, 1)], &decoded(&[(0, 5, 9), (1, 2, 8)]), 7);
        assert_eq!(settled(&books), [(5, 0), (2, 0)]);
        assert_eq!((books.uncounted, books.killed, books.lost), (1, 0, 1));
        assert!(books.flaws.is_empty());
    }

    #[test]
    fn what_was_not_committed_was_killed() {
        let books = Books::settle(vec![counters(5, 4, 0)], &decoded(&[(0, 4, 9)]), 4);
        assert_eq!(settled(&books), [(4, 1)]);
        assert_eq!((books.uncounted, books.killed, books.lost), (0, 1, 1));
    }

    /// Of two events that were in between one was committed, and the packets that would tell are gone.
    #[test]
    fn where_packets_are_gone_the_latest_is_taken() {
        let books = Books::settle(vec![counters(9, 8, 0), counters(9, 8, 0)], &decoded(&[(0, 1, 50), (1, 1, 60)]), 17);
        assert_eq!(settled(&books), [(8, 1), (9, 0)]);
        assert!(books.flaws.is_empty());
    }

    #[test]
    fn counters_that_contradict_each_other_are_told() {
        let flaws = |counted, committed| Books::settle(counted, &BTreeMap::new(), committed).flaws;
        assert_eq!(flaws(vec![counters(1, 2, 0)], 2), ["event 0 has more outcomes than it fired"]);
        assert_eq!(flaws(vec![counters(2, 2, 0)], 3), ["its streams count 1 more records than its events"]);
        assert_eq!(flaws(vec![counters(2, 2, 0)], 1), ["its events count 1 more records than its streams"]);
        let most = counters(u64::MAX, u64::MAX, u64::MAX);
        assert_eq!(flaws(vec![most, most], u64::MAX).len(), 3);
    }
}
