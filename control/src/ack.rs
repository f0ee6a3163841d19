//! What a process did for a session: `acks/PID-START.json`, which its agent writes.

pub(crate) mod files;

use crate::process::ProcessKey;
use crate::state::StateDumpStatus;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use tracepoint_sinks::account::{Account, ChannelAccount};

/// What a session does in a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum AckState {
    /// Nothing: no rule matches anything in it, or the session is stopped.
    #[default]
    Waiting,
    /// It records.
    Recording,
    /// The session cannot be understood, or not be started.
    Refused,
    /// Nothing is recorded any more; a sink blocks, and has not taken the rest.
    Ending,
    /// The recording ended, and its outputs are complete.
    Ended,
}

/// What became of a rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum RuleAck {
    /// How many events of the process it speaks of.
    Events(usize),
    /// It is not known there, or its filter or limit cannot be kept, and why.
    Unsupported(String),
}

/// What became of events: sums over all of a session in a process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Counters {
    /// How often events were reached.
    pub fired: u64,
    /// How many were written to a ring.
    pub recorded: u64,
    /// How many the filter turned away.
    pub filtered: u64,
    /// How many were left out on purpose.
    pub suppressed: u64,
    /// How many were lost, by reason; `overwritten` and `sink` after the ring.
    pub lost: BTreeMap<String, u64>,
    /// Bytes that sinks took.
    pub bytes: u64,
}

impl Counters {
    /// How many were lost, whatever the reason.
    pub fn total_lost(&self) -> u64 {
        self.lost.values().fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// Adds what an account says, of a session whose sinks took so many bytes.
    pub(crate) fn add_account(&mut self, account: &Account, bytes: u64) {
        self.bytes = self.bytes.saturating_add(bytes);
        account.channels.iter().for_each(|channel| self.add_channel(channel));
    }

    /// Adds what an account says of one channel.
    fn add_channel(&mut self, channel: &ChannelAccount) {
        for event in &channel.events {
            self.fired = self.fired.saturating_add(event.fired);
            self.recorded = self.recorded.saturating_add(event.recorded);
            self.filtered = self.filtered.saturating_add(event.filtered);
            self.suppressed = self.suppressed.saturating_add(event.suppressed);
            event.lost.iter().for_each(|(reason, count)| self.add_lost(reason, *count));
        }
        for stream in &channel.streams {
            self.add_lost("overwritten", stream.overwritten);
            self.add_lost("sink", stream.sink);
        }
    }

    /// Adds the sums of another process, or of another recording.
    pub fn add(&mut self, other: &Self) {
        self.fired = self.fired.saturating_add(other.fired);
        self.recorded = self.recorded.saturating_add(other.recorded);
        self.filtered = self.filtered.saturating_add(other.filtered);
        self.suppressed = self.suppressed.saturating_add(other.suppressed);
        self.bytes = self.bytes.saturating_add(other.bytes);
        other.lost.iter().for_each(|(reason, count)| self.add_lost(reason, *count));
    }

    fn add_lost(&mut self, reason: &str, count: u64) {
        if count > 0 {
            let sum = self.lost.entry(reason.to_owned()).or_default();
            *sum = sum.saturating_add(count);
        }
    }
}

/// The sums of each channel by its name, where there are several. Bytes are not told apart: they are 0.
#[derive(Clone, Debug, Default)]
pub(crate) struct ChannelCounters(pub(crate) BTreeMap<String, Counters>);

impl ChannelCounters {
    /// Adds what an account says.
    pub(crate) fn add_account(&mut self, account: &Account) {
        for channel in account.channels.iter().filter(|_| account.channels.len() > 1) {
            self.0.entry(channel.name.clone()).or_default().add_channel(channel);
        }
    }
}

/// An event that was switched off because its session was over its budget.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct OverBudget {
    /// The event: the one that came most often.
    pub event: String,
    /// What the session took, and what it may.
    pub reason: String,
}

impl OverBudget {
    pub(crate) const fn new(event: String, reason: String) -> Self {
        Self { event, reason }
    }
}

impl std::fmt::Display for OverBudget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} is off: {}", self.event, self.reason)
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "what serde asks for")]
const fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// What became of a rotation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Rotated {
    /// Which one it was: [`SessionSpec::rotations`](crate::SessionSpec::rotations).
    pub number: u64,
    /// The chunks that were closed; none if nothing was recorded since the last time.
    pub chunks: Vec<PathBuf>,
    /// Why a trace goes on where it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// What a process did for a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Ack {
    /// The process.
    pub process: ProcessKey,
    /// Its short name.
    pub name: String,
    /// The session's id.
    pub id: String,
    /// The generation that was applied, or refused.
    pub generation: u64,
    /// What the session does there.
    pub state: AckState,
    /// Why it was refused, or what sinks said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// For each rule what became of it; `None` for those that are not for this process.
    pub rules: Vec<Option<RuleAck>>,
    /// How many events are on.
    pub events: usize,
    /// Events that are off, although rules match them: because their filters do not fit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<String>,
    /// Events that are off because the session was over its budget.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub over_budget: Vec<OverBudget>,
    /// How often an event was switched off for that, in the whole session.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub times_over_budget: u64,
    /// How the state dumps of the process fared in the last recording.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub state_dumps: Vec<StateDumpStatus>,
    /// What was recorded. An event that goes into several channels counts in each.
    pub counters: Counters,
    /// The same for each channel by its name, if there are several; which bytes are whose is not known, and 0.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub channels: BTreeMap<String, Counters>,
    /// The traces that it wrote, or writes.
    pub outputs: Vec<PathBuf>,
    /// Where its UDP servers listen, while it records.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub servers: Vec<SocketAddr>,
    /// What is to be told of its sinks, while it records: which cannot write now, or had to remove something.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sinks: Vec<String>,
    /// The last rotation that was asked for while it recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rotated: Option<Rotated>,
    /// Where its rings are, while it records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rings: Option<PathBuf>,
}

impl Ack {
    /// That of a process that has done nothing yet.
    pub(crate) fn new(process: ProcessKey, name: String) -> Self {
        Self {
            process,
            name,
            id: String::new(),
            generation: 0,
            state: AckState::Waiting,
            error: None,
            rules: Vec::new(),
            events: 0,
            notices: Vec::new(),
            over_budget: Vec::new(),
            times_over_budget: 0,
            state_dumps: Vec::new(),
            counters: Counters::default(),
            channels: BTreeMap::new(),
            outputs: Vec::new(),
            servers: Vec::new(),
            sinks: Vec::new(),
            rotated: None,
            rings: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What others write into an acknowledgement is no reason to panic.
    #[test]
    fn sums_end_at_the_largest_number() {
        let most = Counters {
            fired: u64::MAX,
            recorded: u64::MAX,
            filtered: u64::MAX,
            suppressed: u64::MAX,
            lost: [("sink".to_owned(), u64::MAX)].into(),
            bytes: u64::MAX,
        };
        let mut sum = most.clone();
        sum.add(&most);
        assert_eq!(sum, most);
    }
}
