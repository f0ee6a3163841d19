//! Sums of the counters of events.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use tracepoint_sinks::account::{Account, ChannelAccount};

/// The reasons of losses after a ring: a newer event overwrote the event, or no sink wrote it.
const OVERWRITTEN: &str = "overwritten";
const SINK: &str = "sink";

/// Counters of events: sums over a session in a process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Counters {
    /// Number of times that enabled events were reached.
    pub fired: u64,
    /// Number of events written to a ring.
    pub recorded: u64,
    /// Number of events rejected by a filter.
    pub filtered: u64,
    /// Number of events suppressed by a limit or a sample.
    pub suppressed: u64,
    /// Number of lost events by reason; `overwritten` and `sink` are losses after the ring.
    pub lost: BTreeMap<String, u64>,
    /// The events in `sink` of `lost` whose reason is known, such as `network`, by reason.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub sink_lost: BTreeMap<String, u64>,
    /// Bytes that sinks took.
    pub bytes: u64,
}

impl Counters {
    /// Number of lost events, for all reasons.
    pub fn total_lost(&self) -> u64 {
        self.lost.values().fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// Returns the number of recorded events that were overwritten in a ring. They are included in the [lost](Counters::lost) events.
    pub fn overwritten(&self) -> u64 {
        self.lost.get(OVERWRITTEN).copied().unwrap_or_default()
    }

    /// Returns the number of events that were recorded and kept: not overwritten, and written by a sink, or acknowledged by its peer.
    pub fn kept(&self) -> u64 {
        let lost_later = [OVERWRITTEN, SINK].iter().filter_map(|reason| self.lost.get(*reason));
        self.recorded.saturating_sub(lost_later.fold(0, |sum, count| sum.saturating_add(*count)))
    }

    /// Counts all kept events as lost by the sinks, because there were none.
    pub fn lose_kept(&mut self) {
        self.add_lost(SINK, self.kept());
    }

    /// Adds the counters of an account, and the bytes that the session's sinks have written.
    #[doc(hidden)]
    pub fn add_account(&mut self, account: &Account, bytes: u64) {
        self.bytes = self.bytes.saturating_add(bytes);
        account.channels.iter().for_each(|channel| self.add_channel(channel));
    }

    /// Adds the counters of one channel.
    fn add_channel(&mut self, channel: &ChannelAccount) {
        for event in &channel.events {
            self.fired = self.fired.saturating_add(event.fired);
            self.recorded = self.recorded.saturating_add(event.recorded);
            self.filtered = self.filtered.saturating_add(event.filtered);
            self.suppressed = self.suppressed.saturating_add(event.suppressed);
            event.lost.iter().for_each(|(reason, count)| self.add_lost(reason, *count));
        }
        for stream in &channel.streams {
            self.add_lost(OVERWRITTEN, stream.overwritten);
            self.add_lost(SINK, stream.sink);
            stream.sink_lost.iter().for_each(|(reason, count)| add(&mut self.sink_lost, reason, *count));
        }
    }

    /// Adds the counters of another process or recording.
    pub fn add(&mut self, other: &Self) {
        self.fired = self.fired.saturating_add(other.fired);
        self.recorded = self.recorded.saturating_add(other.recorded);
        self.filtered = self.filtered.saturating_add(other.filtered);
        self.suppressed = self.suppressed.saturating_add(other.suppressed);
        self.bytes = self.bytes.saturating_add(other.bytes);
        other.lost.iter().for_each(|(reason, count)| self.add_lost(reason, *count));
        other.sink_lost.iter().for_each(|(reason, count)| add(&mut self.sink_lost, reason, *count));
    }

    fn add_lost(&mut self, reason: &str, count: u64) {
        add(&mut self.lost, reason, count);
    }
}

fn add(to: &mut BTreeMap<String, u64>, reason: &str, count: u64) {
    if count > 0 {
        let sum = to.entry(reason.to_owned()).or_default();
        *sum = sum.saturating_add(count);
    }
}

/// As in `1000 recorded, of which 10 overwritten, 2 not written; 5 filtered; lost before the ring: 3 ring_full`. Zero counts are omitted.
impl fmt::Display for Counters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} recorded", self.recorded)?;
        let mut before = ", of which";
        for (count, what) in
            [(self.overwritten(), "overwritten"), (self.lost.get(SINK).copied().unwrap_or(0), "not written")]
        {
            if count > 0 {
                write!(f, "{before} {count} {what}")?;
                before = ",";
            }
        }
        for (count, what) in [(self.filtered, "filtered"), (self.suppressed, "suppressed")] {
            if count > 0 {
                write!(f, "; {count} {what}")?;
            }
        }
        let mut before = "; lost before the ring:";
        for (reason, count) in self.lost.iter().filter(|(reason, _)| ![OVERWRITTEN, SINK].contains(&reason.as_str())) {
            write!(f, "{before} {count} {reason}")?;
            before = ",";
        }
        Ok(())
    }
}

/// Counters of each channel by name, if the session has several. Bytes are not counted per channel and stay 0.
#[derive(Clone, Debug, Default)]
pub struct ChannelCounters(BTreeMap<String, Counters>);

impl ChannelCounters {
    /// The counters by channel.
    pub fn into_map(self) -> BTreeMap<String, Counters> {
        self.0
    }

    /// Adds the counters of an account.
    pub fn add_account(&mut self, account: &Account) {
        for channel in account.channels.iter().filter(|_| account.channels.len() > 1) {
            self.0.entry(channel.name.clone()).or_default().add_channel(channel);
        }
    }
}
