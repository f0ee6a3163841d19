//! The budget of a session in this process. It is checked four times a second; when it is exceeded, the most frequent event is disabled.
//!
//! A check covers the last second, or the time since the last event was disabled if that is shorter. It compares the bytes written to the
//! rings, by their counters, and processor time: the time of the drain thread, as accounted by the kernel, plus an estimate of the time
//! that the events took at their sites, which is the number of events times the cost of one ([`cost`]).
//!
//! A flood is detected at the first check at which the budget of a whole second is used up. No check takes place in the second after an
//! event was disabled.

mod cost;

use crate::catalog::OWN;
use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};
use tracepoint_run_dir::ack::OverBudget;
use tracepoint_session_spec::{BudgetSpec, CpuPercent};

/// The interval between two checks.
pub(crate) const TICK: Duration = Duration::from_millis(250);
/// The time that a budget covers.
const WINDOW: Duration = Duration::from_secs(1);

/// The resources that a recording has used since it began.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    /// Bytes of packets in the rings.
    pub(crate) bytes: u64,
    /// The processor time of the drain thread.
    pub(crate) drain: Duration,
    /// The counts of each event, by name.
    pub(crate) events: BTreeMap<String, EventUsage>,
}

/// How often an event fired and was recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct EventUsage {
    pub(crate) fired: u64,
    pub(crate) recorded: u64,
}

/// Compares the usage of a session with its budget.
#[derive(Clone, Debug, Default)]
pub(crate) struct BudgetWatch {
    round: u64,
    /// The samples of the last second, oldest first; the oldest is at least a second old if possible. Cleared when an event is disabled.
    samples: VecDeque<(Instant, Usage)>,
    off: Vec<OverBudget>,
    times: u64,
    /// No check before this time: the drain is still processing packets of the event that was last disabled.
    paused_until: Option<Instant>,
}

impl BudgetWatch {
    /// Applies the session's budget. A new round enables all events again.
    pub(crate) fn follow(&mut self, budget: Option<&BudgetSpec>) {
        let round = budget.map(|budget| budget.round);
        if round != Some(self.round) {
            self.round = round.unwrap_or_default();
            self.reset();
        }
    }

    /// Allows all events to be enabled again.
    pub(crate) fn reset(&mut self) {
        self.samples.clear();
        self.off.clear();
    }

    /// Returns whether the budget has disabled this event.
    pub(crate) fn is_off(&self, event: &str) -> bool {
        self.off.iter().any(|over| over.event == event)
    }

    /// Returns the disabled events, and how often the budget was exceeded.
    pub(crate) fn report(&self) -> (Vec<OverBudget>, u64) {
        (self.off.clone(), self.times)
    }

    /// Checks the session's usage; returns the event to disable if the budget is exceeded.
    pub(crate) fn check(&mut self, budget: &BudgetSpec, now: Instant, usage: Usage) -> Option<&OverBudget> {
        if self.paused_until.is_some_and(|end| now < end) {
            return None;
        }
        // Checks are a little late. Keep the newest sample that is at least a second old, so that the window is not shorter than a second.
        while self.samples.get(1).is_some_and(|(at, _)| now.saturating_duration_since(*at) >= WINDOW) {
            self.samples.pop_front();
        }
        let over = self
            .samples
            .front()
            .and_then(|(at, before)| exceeded(budget, before, &usage, now.saturating_duration_since(*at)));
        let Some(over) = over.filter(|over| !self.is_off(&over.event)) else {
            self.samples.push_back((now, usage));
            return None;
        };
        // The usage so far must not count against another event.
        self.samples.clear();
        self.paused_until = Some(now + WINDOW);
        self.times += 1;
        self.off.push(over);
        self.off.last()
    }
}

/// Returns the most frequent event and how the budget was exceeded in `time`; `None` if it was not exceeded, or if there was no event.
fn exceeded(budget: &BudgetSpec, before: &Usage, now: &Usage, time: Duration) -> Option<OverBudget> {
    // Scales the usage of a longer window to one second.
    let part = |amount: u128| amount * WINDOW.as_nanos() / time.max(WINDOW).as_nanos();
    let part_of = |time: Duration| Duration::from_nanos(u64::try_from(part(time.as_nanos())).unwrap_or(u64::MAX));
    let counts = |count: fn(&EventUsage) -> u64| {
        now.events.iter().map(move |(name, event)| {
            let earlier = before.events.get(name).copied().unwrap_or_default();
            (name.as_str(), count(event).saturating_sub(count(&earlier)))
        })
    };
    let most_frequent = |count: fn(&EventUsage) -> u64| {
        let others = counts(count).filter(|(name, count)| *count > 0 && !name.starts_with(&format!("{OWN}:")));
        others.max_by_key(|(_, count)| *count).map(|(name, _)| name.to_owned())
    };
    let bytes = part(now.bytes.saturating_sub(before.bytes).into());
    if let Some(most) = budget.bytes_per_second.filter(|most| bytes > u128::from(*most)) {
        let reason = format!("{bytes} bytes were recorded in a second; the budget allows {most}");
        return Some(OverBudget::new(most_frequent(|event| event.recorded)?, reason));
    }
    let most = budget.cpu_percent?;
    let fired: u64 = counts(|event| event.fired).map(|(_, count)| count).sum();
    let events = part_of(cost::of_events(fired));
    let drain = part_of(now.drain.saturating_sub(before.drain));
    if (events + drain).as_nanos() <= u128::from(most.ns_per_second()) {
        return None;
    }
    let reason = format!(
        "{} events took about {} of a core in a second, the drain thread {}; the budget allows {most}",
        part(fired.into()),
        percent(events),
        percent(drain)
    );
    Some(OverBudget::new(most_frequent(|event| event.fired)?, reason))
}

/// A share of one second, in percent.
fn percent(time: Duration) -> String {
    CpuPercent::try_from(time.as_secs_f64() * 100.0).map_or_else(|_| "0 %".to_owned(), |percent| percent.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Usage: bytes, the drain's ms, and the counts of `a:flood` and `a:rare`.
    fn usage(bytes: u64, drain: u64, flood: u64, rare: u64) -> Usage {
        let event = |count| EventUsage { fired: count, recorded: count };
        Usage {
            bytes,
            drain: Duration::from_millis(drain),
            events: [("a:flood".to_owned(), event(flood)), ("a:rare".to_owned(), event(rare))].into(),
        }
    }

    /// Returns the event that is disabled at each of these checks, given by their times in ms.
    fn checks(budget: &BudgetSpec, samples: &[(u64, Usage)]) -> Vec<Option<String>> {
        let (mut watch, began) = (BudgetWatch::default(), Instant::now());
        let check = |(ms, usage): &(u64, Usage)| {
            let over = watch.check(budget, began + Duration::from_millis(*ms), usage.clone());
            over.map(|over| over.event.clone())
        };
        samples.iter().map(check).collect()
    }

    #[test]
    fn a_flood_is_switched_off_and_rare_events_stay_on() {
        let budget = BudgetSpec::new(None, Some(1000));
        let found = checks(
            &budget,
            &[
                (0, usage(5000, 0, 50, 1)),
                (250, usage(5900, 0, 60, 2)),
                // 1,000 bytes in the second.
                (500, usage(6000, 0, 61, 3)),
                (750, usage(6001, 0, 62, 4)),
                // The packets of the flood are not attributed to other events.
                (1000, usage(9000, 0, 62, 20)),
                (1750, usage(9900, 0, 62, 21)),
                (2000, usage(10_000, 0, 62, 22)),
                (2250, usage(11_000, 0, 62, 40)),
            ],
        );
        let (flood, rare) = (Some("a:flood".to_owned()), Some("a:rare".to_owned()));
        assert_eq!(found, [None, None, None, flood, None, None, None, rare]);
    }

    #[test]
    fn the_window_slides() {
        let budget = BudgetSpec::new(None, Some(1000));
        let steady: Vec<_> = (0..20).map(|n| (n * 250, usage(n * 250, 0, n, n))).collect();
        assert!(checks(&budget, &steady).iter().all(Option::is_none));
        let faster: Vec<_> = (0..20).map(|n| (n * 250, usage(n * 251, 0, n, n))).collect();
        assert!(checks(&budget, &faster).iter().any(Option::is_some));
    }

    /// A thread that sleeps for 250 ms wakes a little later.
    #[test]
    fn late_checks_do_not_shorten_the_window() {
        let budget = BudgetSpec::new(None, Some(1000));
        for pause in [250, 251, 260, 400, 999, 1000, 5000] {
            let exceeds = |rate: u64| {
                let steady: Vec<_> = (0..20).map(|n| (n * pause, usage(n * pause * rate / 1000, 0, n, n))).collect();
                checks(&budget, &steady).iter().any(Option::is_some)
            };
            assert_eq!((exceeds(1000), exceeds(1010)), (false, true), "every {pause} ms");
        }
    }

    #[test]
    fn the_drain_counts_and_needs_an_event_to_blame() {
        let budget = BudgetSpec::new("1%".parse().ok(), None);
        let drain = |ms, flood| checks(&budget, &[(0, usage(0, 0, 0, 0)), (250, usage(0, ms, flood, 0))]).remove(1);
        assert_eq!(drain(9, 1), None);
        assert_eq!(drain(11, 1), Some("a:flood".to_owned()));
        assert_eq!(drain(11, 0), None);
        // Events alone exceed the budget, independent of the cost of one event.
        assert_eq!(drain(0, 1 << 40), Some("a:flood".to_owned()));
    }

    #[test]
    fn a_new_round_resets_the_watch() {
        let mut budget = BudgetSpec::new(None, Some(10));
        let (mut watch, now) = (BudgetWatch::default(), Instant::now());
        watch.follow(Some(&budget));
        assert!(watch.check(&budget, now, usage(0, 0, 0, 0)).is_none());
        assert!(watch.check(&budget, now, usage(11, 0, 2, 1)).is_some());
        watch.follow(Some(&budget));
        assert!(watch.is_off("a:flood") && !watch.is_off("a:rare"));
        budget.round += 1;
        watch.follow(Some(&budget));
        assert!(!watch.is_off("a:flood"));
        assert_eq!(watch.report(), (Vec::new(), 1));
    }
}
