//! Turns repeated counts into rates and histories.

use crate::top::source::{EventRow, HISTORY, ProcessRow, per_second};
use std::collections::{BTreeMap, HashMap, VecDeque};
use tracepoint_probes::snapshot::Results;
use tracepoint_reader::process::ProcessKey;
use tracepoint_session_io::statistics::{ProcessStatistics, SessionStatistics};
use tracepoint_session_spec::Rule;

/// Counts so far.
#[derive(Default)]
pub(super) struct Counts {
    /// The time of the last count.
    time: Option<u64>,
    /// The last count of each event in each process.
    last: HashMap<(ProcessKey, String), u64>,
    events: BTreeMap<String, Event>,
    processes: BTreeMap<ProcessKey, ProcessRow>,
    /// The length of all histories.
    slices: usize,
}

#[derive(Default)]
struct Event {
    /// The rule that counts it.
    rule: Option<Rule>,
    is_on: bool,
    count: u64,
    since_last: u64,
    per_second: f64,
    history: VecDeque<u64>,
}

impl Counts {
    /// Adds the counts of a later time.
    pub(super) fn add(&mut self, statistics: &SessionStatistics) {
        let seconds = self.time.replace(statistics.time).map(|last| seconds(last, statistics.time));
        let last = std::mem::take(&mut self.last);
        self.processes.clear();
        for process in &statistics.processes {
            let mut sum = 0;
            for (event, count) in counts(process) {
                let key = (process.process, event.to_owned());
                let before = last.get(&key).copied().unwrap_or(0);
                // A count that decreased was restarted: the event was off in the meantime.
                let more = count.checked_sub(before).unwrap_or(count);
                let event = self.events.entry(key.1.clone()).or_default();
                event.count += more;
                event.since_last += more;
                sum += more;
                self.last.insert(key, count);
            }
            let name = format!("{} {}", process.process.pid, process.name);
            let per_second = seconds.map_or(0.0, |seconds| per_second(sum, seconds));
            self.processes.insert(process.process, ProcessRow { name, per_second, is_alive: process.is_alive });
        }
        self.note_state(statistics);
        self.slices = (self.slices + usize::from(seconds.is_some())).min(HISTORY);
        for event in self.events.values_mut() {
            let since_last = std::mem::take(&mut event.since_last);
            // Counts from before the first look have no duration.
            let Some(seconds) = seconds else { continue };
            event.per_second = per_second(since_last, seconds);
            event.history.push_back(since_last);
            while event.history.len() < self.slices {
                event.history.push_front(0);
            }
            event.history.drain(..event.history.len() - self.slices);
        }
    }

    /// Notes which events are currently counted, and by which rules.
    pub(super) fn note_state(&mut self, statistics: &SessionStatistics) {
        self.events.values_mut().for_each(|event| event.is_on = false);
        for process in &statistics.processes {
            if let Some(row) = self.processes.get_mut(&process.process) {
                row.is_alive = process.is_alive;
            }
            for result in &process.statistics {
                if matches!(result.snapshot.results, Results::Count(_)) {
                    let event = self.events.entry(result.event.clone()).or_default();
                    event.rule = Some(result.rule.clone());
                    event.is_on |= process.is_alive;
                }
            }
        }
    }

    /// Seconds between the last count and `time`.
    pub(super) fn age(&self, time: u64) -> Option<f64> {
        self.time.map(|last| seconds(last, time))
    }

    /// The names of all events.
    pub(super) fn names(&self) -> impl Iterator<Item = &String> {
        self.events.keys()
    }

    /// The rule that counts an event.
    pub(super) fn rule(&self, event: &str) -> Option<&Rule> {
        self.events.get(event)?.rule.as_ref()
    }

    pub(super) fn processes(&self) -> Vec<ProcessRow> {
        self.processes.values().cloned().collect()
    }

    pub(super) fn rows(&self, fields: &HashMap<String, Vec<String>>) -> Vec<EventRow> {
        let row = |(name, event): (&String, &Event)| EventRow {
            name: name.clone(),
            is_on: event.is_on,
            count: event.count,
            per_second: event.per_second,
            history: event.history.iter().copied().collect(),
            fields: fields.get(name).cloned().unwrap_or_default(),
        };
        self.events.iter().map(row).collect()
    }
}

/// The counts of a process by event. If several rules count an event, the largest count.
fn counts(process: &ProcessStatistics) -> BTreeMap<&str, u64> {
    let mut counts = BTreeMap::new();
    for result in &process.statistics {
        if let Results::Count(rows) = &result.snapshot.results {
            let count: &mut u64 = counts.entry(result.event.as_str()).or_default();
            *count = (*count).max(rows.values().sum());
        }
    }
    counts
}

#[expect(clippy::cast_precision_loss, reason = "a time span")]
fn seconds(from: u64, to: u64) -> f64 {
    to.saturating_sub(from) as f64 / 1e9
}
