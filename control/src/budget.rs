//! The budget of a session in this process: looked at four times a second, and where it is overdrawn, the hottest event is switched off.
//!
//! What is looked at is what a second took, or what the time since the last event was switched off took, if that is less: the bytes
//! that went into the rings, by their counters, and the processor time of the drain thread, as the kernel has it, together with what the
//! events took at their sites. That is an estimate: how often they fired, times what one costs here ([`cost`]).
//!
//! A flood is told at the first look at which a whole second's budget is gone. After that there is no look for a second.

mod cost;

use crate::ack::OverBudget;
use crate::catalog::OWN;
use crate::spec::{BudgetSpec, CpuPercent};
use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

/// The pause between two looks.
pub(crate) const TICK: Duration = Duration::from_millis(250);
/// What a budget is for.
const WINDOW: Duration = Duration::from_secs(1);

/// What a recording has cost since it began.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    /// Bytes of packets, as they stand in the rings.
    pub(crate) bytes: u64,
    /// The processor time of the drain thread.
    pub(crate) drain: Duration,
    /// Of each event, by its name.
    pub(crate) events: BTreeMap<String, EventUsage>,
}

/// How often an event came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct EventUsage {
    pub(crate) fired: u64,
    pub(crate) recorded: u64,
}

/// Compares what a session costs with its budget.
#[derive(Debug, Default)]
pub(crate) struct BudgetWatch {
    round: u64,
    /// Of the last second, the oldest first, which is a second old or a little more; none of before an event was switched off.
    samples: VecDeque<(Instant, Usage)>,
    off: Vec<OverBudget>,
    times: u64,
    /// Until then nothing is looked at: what the last one has left in the rings takes the drain's time still.
    rests_until: Option<Instant>,
}

impl BudgetWatch {
    /// Takes up what the session's file says.
    pub(crate) fn follow(&mut self, budget: Option<&BudgetSpec>) {
        let round = budget.map(|budget| budget.round);
        if round != Some(self.round) {
            self.round = round.unwrap_or_default();
            self.begin_anew();
        }
    }

    /// All events may be on again.
    pub(crate) fn begin_anew(&mut self) {
        self.samples.clear();
        self.off.clear();
    }

    /// Whether an event is switched off.
    pub(crate) fn bars(&self, event: &str) -> bool {
        self.off.iter().any(|over| over.event == event)
    }

    /// What is off, and how often that was so.
    pub(crate) fn told(&self) -> (Vec<OverBudget>, u64) {
        (self.off.clone(), self.times)
    }

    /// Looks at what the session took; the event that is to be off from here on, if it was too much.
    pub(crate) fn look(&mut self, budget: &BudgetSpec, now: Instant, usage: Usage) -> Option<&OverBudget> {
        if self.rests_until.is_some_and(|end| now < end) {
            return None;
        }
        // Looks come a little late: without the last one that is older, it would be less than a second that is looked at.
        while self.samples.get(1).is_some_and(|(at, _)| now.saturating_duration_since(*at) >= WINDOW) {
            self.samples.pop_front();
        }
        let over = self
            .samples
            .front()
            .and_then(|(at, before)| overdrawn(budget, before, &usage, now.saturating_duration_since(*at)));
        let Some(over) = over.filter(|over| !self.bars(&over.event)) else {
            self.samples.push_back((now, usage));
            return None;
        };
        // The next one is not to blame for what this one took.
        self.samples.clear();
        self.rests_until = Some(now + WINDOW);
        self.times += 1;
        self.off.push(over);
        self.off.last()
    }
}

/// The hottest event, and by how much the budget was overdrawn in this time; `None` if it was not, or no event is to blame.
fn overdrawn(budget: &BudgetSpec, before: &Usage, now: &Usage, time: Duration) -> Option<OverBudget> {
    // Of more than a second, a second's part.
    let part = |amount: u128| amount * WINDOW.as_nanos() / time.max(WINDOW).as_nanos();
    let part_of = |time: Duration| Duration::from_nanos(u64::try_from(part(time.as_nanos())).unwrap_or(u64::MAX));
    let came = |count: fn(&EventUsage) -> u64| {
        now.events.iter().map(move |(name, event)| {
            let earlier = before.events.get(name).copied().unwrap_or_default();
            (name.as_str(), count(event).saturating_sub(count(&earlier)))
        })
    };
    let hottest = |count: fn(&EventUsage) -> u64| {
        let others = came(count).filter(|(name, count)| *count > 0 && !name.starts_with(&format!("{OWN}:")));
        others.max_by_key(|(_, count)| *count).map(|(name, _)| name.to_owned())
    };
    let bytes = part(now.bytes.saturating_sub(before.bytes).into());
    if let Some(most) = budget.bytes_per_second.filter(|most| bytes > u128::from(*most)) {
        let reason = format!("{bytes} bytes were recorded in a second, and the budget has {most}");
        return Some(OverBudget::new(hottest(|event| event.recorded)?, reason));
    }
    let most = budget.cpu_percent?;
    let fired: u64 = came(|event| event.fired).map(|(_, count)| count).sum();
    let events = part_of(cost::of_events(fired));
    let drain = part_of(now.drain.saturating_sub(before.drain));
    if (events + drain).as_nanos() <= u128::from(most.ns_per_second()) {
        return None;
    }
    let reason = format!(
        "{} events took about {} of a core in a second, the drain thread {}, and the budget has {most}",
        part(fired.into()),
        percent(events),
        percent(drain)
    );
    Some(OverBudget::new(hottest(|event| event.fired)?, reason))
}

/// A part of a second.
fn percent(time: Duration) -> String {
    CpuPercent::try_from(time.as_secs_f64() * 100.0).map_or_else(|_| "0 %".to_owned(), |percent| percent.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// After so many ms: bytes, the drain's ms, and how often `a:flood` and `a:rare` came.
    fn usage(bytes: u64, drain: u64, flood: u64, rare: u64) -> Usage {
        let event = |count| EventUsage { fired: count, recorded: count };
        Usage {
            bytes,
            drain: Duration::from_millis(drain),
            events: [("a:flood".to_owned(), event(flood)), ("a:rare".to_owned(), event(rare))].into(),
        }
    }

    /// What is switched off at each of these looks.
    fn looks(budget: &BudgetSpec, looks: &[(u64, Usage)]) -> Vec<Option<String>> {
        let (mut watch, began) = (BudgetWatch::default(), Instant::now());
        let look = |(ms, usage): &(u64, Usage)| {
            let over = watch.look(budget, began + Duration::from_millis(*ms), usage.clone());
            over.map(|over| over.event.clone())
        };
        looks.iter().map(look).collect()
    }

    #[test]
    fn a_flood_is_switched_off_and_what_is_rare_goes_on() {
        let budget = BudgetSpec::new(None, Some(1000));
        let found = looks(
            &budget,
            &[
                (0, usage(5000, 0, 50, 1)),
                (250, usage(5900, 0, 60, 2)),
                // 1,000 in the second.
                (500, usage(6000, 0, 61, 3)),
                (750, usage(6001, 0, 62, 4)),
                // What it has left is not the others' fault.
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
    fn a_second_slides() {
        let budget = BudgetSpec::new(None, Some(1000));
        let steady: Vec<_> = (0..20).map(|n| (n * 250, usage(n * 250, 0, n, n))).collect();
        assert!(looks(&budget, &steady).iter().all(Option::is_none));
        let faster: Vec<_> = (0..20).map(|n| (n * 250, usage(n * 251, 0, n, n))).collect();
        assert!(looks(&budget, &faster).iter().any(Option::is_some));
    }

    /// Who is woken after 250 ms comes a little later.
    #[test]
    fn a_second_is_one_however_late_the_looks_come() {
        let budget = BudgetSpec::new(None, Some(1000));
        for pause in [250, 251, 260, 400, 999, 1000, 5000] {
            let looked = |rate: u64| {
                let steady: Vec<_> = (0..20).map(|n| (n * pause, usage(n * pause * rate / 1000, 0, n, n))).collect();
                looks(&budget, &steady).iter().any(Option::is_some)
            };
            assert_eq!((looked(1000), looked(1010)), (false, true), "every {pause} ms");
        }
    }

    #[test]
    fn the_drain_counts_and_somebody_has_to_be_to_blame() {
        let budget = BudgetSpec::new("1%".parse().ok(), None);
        let drain = |ms, flood| looks(&budget, &[(0, usage(0, 0, 0, 0)), (250, usage(0, ms, flood, 0))]).remove(1);
        assert_eq!(drain(9, 1), None);
        assert_eq!(drain(11, 1), Some("a:flood".to_owned()));
        assert_eq!(drain(11, 0), None);
        // Events alone, whatever one of them costs.
        assert_eq!(drain(0, 1 << 40), Some("a:flood".to_owned()));
    }

    #[test]
    fn another_round_begins_anew() {
        let mut budget = BudgetSpec::new(None, Some(10));
        let (mut watch, now) = (BudgetWatch::default(), Instant::now());
        watch.follow(Some(&budget));
        assert!(watch.look(&budget, now, usage(0, 0, 0, 0)).is_none());
        assert!(watch.look(&budget, now, usage(11, 0, 2, 1)).is_some());
        watch.follow(Some(&budget));
        assert!(watch.bars("a:flood") && !watch.bars("a:rare"));
        budget.round += 1;
        watch.follow(Some(&budget));
        assert!(!watch.bars("a:flood"));
        assert_eq!(watch.told(), (Vec::new(), 1));
    }
}
