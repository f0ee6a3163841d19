//! Reconciles the counters of one ring with its committed records.
//!
//! A killed thread leaves, for each level of nested signal handlers, at most one event between two of its counters. An event is
//! counted as fired first, so such an event has fired and has no outcome yet. If it was committed, it counts as recorded; otherwise as killed.

use super::walker::EventCount;
use crate::ring::EventCounters;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// The outcome of the firings of one event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// Firings that were committed.
    pub(crate) recorded: u64,
    /// Firings without another outcome.
    pub(crate) killed: u64,
}

/// The accounting of one ring.
#[derive(Debug, Default)]
pub(crate) struct RingAccounting {
    /// The counters of each event, by its id.
    pub(crate) counted: Vec<EventCounters>,
    /// The outcome of each event, by its id.
    pub(crate) outcomes: Vec<Outcome>,
    /// Number of events that were committed but not yet counted as recorded.
    pub(crate) uncounted: u64,
    /// Number of events that fired and have no other outcome.
    pub(crate) killed: u64,
    /// All losses before the ring, including killed events.
    pub(crate) lost: u64,
    /// Contradictions between the counters.
    pub(crate) contradictions: Vec<String>,
}

impl RingAccounting {
    /// The accounting of a ring that is being written, from its counters alone.
    pub(crate) fn running(counted: Vec<EventCounters>) -> Self {
        let outcomes = counted.iter().map(|event| Outcome { recorded: event.recorded, killed: 0 }).collect();
        Self { counted, outcomes, ..Self::default() }
    }

    /// The same for a ring with a running owner: an event without an outcome will get one, and is counted then.
    pub(crate) fn without_killed(mut self) -> Self {
        for (counted, outcome) in self.counted.iter_mut().zip(&mut self.outcomes) {
            counted.fired = counted.fired.saturating_sub(std::mem::take(&mut outcome.killed));
        }
        self.lost = self.lost.saturating_sub(std::mem::take(&mut self.killed));
        self
    }

    /// Reconciles `counted`, by event id, with the `committed` records of the ring, some of which were `found` in packets.
    pub(crate) fn reconcile(counted: Vec<EventCounters>, found: &BTreeMap<u64, EventCount>, committed: u64) -> Self {
        let mut accounting = Self::default();
        let found_of = |id: usize| found.get(&(id as u64)).copied().unwrap_or_default();
        // Firings without an outcome; negative where the counters contradict each other.
        let mut pending: Vec<i128> = counted.iter().map(pending).collect();
        // A record in a packet was committed, even if it is not counted.
        for (id, counters) in counted.iter().enumerate() {
            let recorded = counters.recorded.max(found_of(id).count);
            pending[id] -= i128::from(recorded - counters.recorded);
            accounting.uncounted = accounting.uncounted.saturating_add(recorded - counters.recorded);
            accounting.outcomes.push(Outcome { recorded, killed: 0 });
        }
        let mut missing =
            i128::from(committed) - accounting.outcomes.iter().map(|event| i128::from(event.recorded)).sum::<i128>();
        // Records of lost packets do not identify their events: use events without an outcome, the most recently recorded first.
        let mut candidates: Vec<usize> = (0..counted.len()).filter(|id| pending[*id] > 0).collect();
        candidates.sort_by_key(|id| Reverse(found_of(*id).last));
        for id in candidates {
            let given = u64::try_from(missing.min(pending[id])).unwrap_or(0);
            missing -= i128::from(given);
            pending[id] -= i128::from(given);
            accounting.outcomes[id].recorded += given;
            accounting.uncounted = accounting.uncounted.saturating_add(given);
        }
        if missing != 0 {
            let (more, less) = if missing > 0 { ("streams", "events") } else { ("events", "streams") };
            let count = missing.unsigned_abs();
            accounting.contradictions.push(format!("its {more} count {count} more records than its {less}"));
        }
        for (id, pending) in pending.into_iter().enumerate() {
            match u64::try_from(pending) {
                Ok(killed) => accounting.outcomes[id].killed = killed,
                Err(_) => accounting.contradictions.push(format!("event {id} has more outcomes than it fired")),
            }
        }
        let sum = |numbers: &mut dyn Iterator<Item = u64>| numbers.fold(0, u64::saturating_add);
        accounting.killed = sum(&mut accounting.outcomes.iter().map(|event| event.killed));
        accounting.lost = sum(&mut counted.iter().flat_map(|event| event.lost)).saturating_add(accounting.killed);
        accounting.counted = counted;
        accounting
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

    fn found(counts: &[(u64, u64, u64)]) -> BTreeMap<u64, EventCount> {
        counts.iter().map(|(id, count, last)| (*id, EventCount { count: *count, last: *last })).collect()
    }

    fn outcomes(accounting: &RingAccounting) -> Vec<(u64, u64)> {
        accounting.outcomes.iter().map(|event| (event.recorded, event.killed)).collect()
    }

    #[test]
    fn committed_events_count_as_recorded() {
        let accounting =
            RingAccounting::reconcile(vec![counters(5, 4, 0), counters(3, 2, 1)], &found(&[(0, 5, 9), (1, 2, 8)]), 7);
        assert_eq!(outcomes(&accounting), [(5, 0), (2, 0)]);
        assert_eq!((accounting.uncounted, accounting.killed, accounting.lost), (1, 0, 1));
        assert!(accounting.contradictions.is_empty());
    }

    #[test]
    fn uncommitted_events_count_as_killed() {
        let accounting = RingAccounting::reconcile(vec![counters(5, 4, 0)], &found(&[(0, 4, 9)]), 4);
        assert_eq!(outcomes(&accounting), [(4, 1)]);
        assert_eq!((accounting.uncounted, accounting.killed, accounting.lost), (0, 1, 1));
    }

    /// One of two events in progress was committed, and the packets that would show which are gone.
    #[test]
    fn the_latest_counts_are_used_without_packets() {
        let accounting = RingAccounting::reconcile(
            vec![counters(9, 8, 0), counters(9, 8, 0)],
            &found(&[(0, 1, 50), (1, 1, 60)]),
            17,
        );
        assert_eq!(outcomes(&accounting), [(8, 1), (9, 0)]);
        assert!(accounting.contradictions.is_empty());
    }

    #[test]
    fn contradictory_counters_are_reported() {
        let contradictions =
            |counted, committed| RingAccounting::reconcile(counted, &BTreeMap::new(), committed).contradictions;
        assert_eq!(contradictions(vec![counters(1, 2, 0)], 2), ["event 0 has more outcomes than it fired"]);
        assert_eq!(contradictions(vec![counters(2, 2, 0)], 3), ["its streams count 1 more records than its events"]);
        assert_eq!(contradictions(vec![counters(2, 2, 0)], 1), ["its events count 1 more records than its streams"]);
        let most = counters(u64::MAX, u64::MAX, u64::MAX);
        assert_eq!(contradictions(vec![most, most], u64::MAX).len(), 3);
    }
}
