//! The line that a recording shows on a terminal while it runs: counts, and the most frequent events.

use crate::failure::Failure;
use crate::output::in_line;
use crate::progress::LiveLine;
use crate::units;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use tracepoint_controller::Controller;
use tracepoint_run_dir::{Ack, Counters};

/// The number of events shown by name.
const TOP: usize = 3;

pub(super) struct RecordLine {
    line: LiveLine,
    /// The counts of each event over all processes, and the time of the last look.
    fired: Option<(Instant, BTreeMap<String, u64>)>,
}

impl RecordLine {
    /// Shows nothing with a command, which writes to the same terminal.
    pub(super) fn new(with_command: bool) -> Self {
        Self { line: if with_command { LiveLine::hidden() } else { LiveLine::new() }, fired: None }
    }

    pub(super) fn is_shown(&self) -> bool {
        self.line.is_shown()
    }

    /// Shows the counts of all processes together.
    pub(super) fn show(&mut self, controller: &Controller, acks: &[Ack]) -> Result<(), Failure> {
        if !self.is_shown() {
            return Ok(());
        }
        let mut sum = Counters::default();
        for ack in acks {
            sum.add(&ack.counters);
        }
        let (now, fired) = (Instant::now(), fired(controller, acks)?);
        let top = self.fired.as_ref().map(|(before, earlier)| top(earlier, &fired, now - *before));
        let top = top.unwrap_or_default();
        self.fired = Some((now, fired));
        let off: usize = acks.iter().map(|ack| ack.over_budget.len()).sum();
        self.line.show("events", sum.kept(), || {
            let off = if off > 0 { format!(", {off} switched off by the budget") } else { String::new() };
            let lag = acks.iter().flat_map(|ack| &ack.streams).filter_map(|stream| stream.lag_ms).max();
            let lag = lag.map_or_else(String::new, |ms| format!(", the peer is {ms} ms behind"));
            format!("{}, lost {}{off}{lag}; Ctrl-C stops{top}", units::bytes(sum.bytes), sum.total_lost())
        });
        Ok(())
    }
}

/// The counts of each event over the processes that acknowledge the session.
fn fired(controller: &Controller, acks: &[Ack]) -> Result<BTreeMap<String, u64>, Failure> {
    let mut fired = BTreeMap::<String, u64>::new();
    for process in controller.processes()? {
        let takes_part = acks.iter().any(|ack| ack.process == process.info().key());
        let Some(status) = takes_part.then(|| process.status().ok()).flatten() else { continue };
        for (name, count) in status.fired {
            let sum = fired.entry(name).or_default();
            *sum = sum.saturating_add(count);
        }
    }
    Ok(fired)
}

/// The most frequent events, with their rates: `; net:recv 812/s, net:send 40/s`.
fn top(earlier: &BTreeMap<String, u64>, now: &BTreeMap<String, u64>, time: Duration) -> String {
    let since = |(name, count): (&String, &u64)| {
        let count = count.saturating_sub(earlier.get(name).copied().unwrap_or_default());
        (count > 0).then(|| (count, in_line(name)))
    };
    let mut events: Vec<_> = now.iter().filter_map(since).collect();
    events.sort_by_key(|(count, _)| Reverse(*count));
    let rate = |count: u64| u128::from(count) * 1_000_000 / time.as_micros().max(1);
    let named = events.iter().take(TOP).map(|(count, name)| format!("{name} {}/s", rate(*count)));
    let named: Vec<_> = named.collect();
    if named.is_empty() { String::new() } else { format!("; {}", named.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::top;
    use std::collections::BTreeMap;
    use std::time::Duration;

    #[test]
    fn the_most_frequent_events_since_the_last_time_are_named() {
        let counts = |counts: &[(&str, u64)]| -> BTreeMap<String, u64> {
            counts.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
        };
        let earlier = counts(&[("a:old", 1000), ("a:b", 5), ("a:c", 90)]);
        let now = counts(&[("a:old", 1000), ("a:b", 25), ("a:c", 91), ("a:d", 400), ("a:e", 3), ("a:lower", 2)]);
        assert_eq!(top(&earlier, &now, Duration::from_millis(500)), "; a:d 800/s, a:b 40/s, a:e 6/s");
        // A restarted process counts from 0.
        assert_eq!(top(&now, &earlier, Duration::from_secs(1)), "");
    }
}
