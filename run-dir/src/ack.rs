//! Acknowledgement of a session by a process: `acks/PID-START.json`, which its agent writes.

mod counters;
#[cfg(target_os = "linux")]
pub mod files;
mod state_dump;

pub use counters::ChannelCounters;
pub use counters::Counters;
pub use state_dump::StateDumpStatus;

use crate::notice::Notice;
use crate::stream_status::StreamStatus;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use tracepoint_reader::process::ProcessKey;

/// State of a session in a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum AckState {
    /// Not recording: no rule matches an event of the process, or the session is stopped.
    #[default]
    Waiting,
    /// Recording, or computing statistics.
    Recording,
    /// The session's description is invalid, or the recording cannot start.
    Refused,
    /// Recording has stopped, but a sink blocks and has not taken the rest yet.
    Ending,
    /// Recording has stopped, and the outputs are complete.
    Ended,
    /// The process died while it recorded. Controllers conclude this; no process acknowledges it.
    Dead,
}

/// Result of a rule in a process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum RuleAck {
    /// Number of events of the process that the rule matches.
    Events(usize),
    /// The process does not support the rule, its filter or its limit, for this reason.
    Unsupported(String),
}

/// The state of a trigger in a process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum TriggerAck {
    /// Watches for its condition.
    Watched,
    /// Watches this number of events of the process for one that matches.
    Events(usize),
    /// Does not support the trigger, or cannot watch for its condition, for this reason.
    Unsupported(String),
}

/// An event that was disabled because its session exceeded its budget.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct OverBudget {
    /// The event: the most frequent one.
    pub event: String,
    /// The cost of the session, and its budget.
    pub reason: String,
}

impl OverBudget {
    /// An event that was disabled for this reason.
    #[doc(hidden)]
    pub const fn new(event: String, reason: String) -> Self {
        Self { event, reason }
    }
}

impl std::fmt::Display for OverBudget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} is off: {}", self.event, self.reason)
    }
}

fn is_zero<T: Default + PartialEq>(number: &T) -> bool {
    *number == T::default()
}

/// Result of a rotation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RotationResult {
    /// Its number, as in `SessionSpec::rotations`.
    pub number: u64,
    /// The closed chunks; none if nothing was recorded since the last rotation.
    pub chunks: Vec<PathBuf>,
    /// The reason why a trace was not rotated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl RotationResult {
    /// The result of the rotation with this number.
    #[doc(hidden)]
    pub const fn new(number: u64, chunks: Vec<PathBuf>, error: Option<String>) -> Self {
        Self { number, chunks, error }
    }
}

/// Acknowledgement of a session by a process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Ack {
    /// The process.
    pub process: ProcessKey,
    /// Short name of the process.
    pub name: String,
    /// The session's id.
    pub id: String,
    /// The generation of the session that was applied or refused.
    pub generation: u64,
    /// State of the session in the process.
    pub state: AckState,
    /// The reason why it was refused, or an error of a sink.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Result of each rule; `None` for rules that do not concern this process.
    pub rules: Vec<Option<RuleAck>>,
    /// The state of the triggers in the process, by their ids: triggers whose conditions the process detects itself, and those that it does
    /// not understand.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub triggers: BTreeMap<String, TriggerAck>,
    /// Number of enabled events.
    pub events: usize,
    /// Deviations from the session's description: events that a filter does not fit, write errors of sinks, chunks removed to free space.
    /// A notice of another process is [`Notice::Reported`].
    #[serde(flatten, with = "crate::notice")]
    pub notices: Vec<Notice>,
    /// Events that were disabled because the session exceeded its budget.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub over_budget: Vec<OverBudget>,
    /// Number of times that an event was disabled for this reason in the whole session.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub times_over_budget: u64,
    /// Status of the state dumps of the process in the last recording.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub state_dumps: Vec<StateDumpStatus>,
    /// Counters of the events. An event that goes into several channels counts once in each.
    pub counters: Counters,
    /// Counters of each channel by name, if there are several; bytes are not counted per channel and stay 0.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub channels: BTreeMap<String, Counters>,
    /// Paths of the traces that it has written or is writing.
    pub outputs: Vec<PathBuf>,
    /// Addresses of its UDP servers while it records.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub servers: Vec<SocketAddr>,
    /// Status of its streaming sinks while it records.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub streams: Vec<StreamStatus>,
    /// The last rotation that was requested while it recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rotated: Option<RotationResult>,
    /// Size of its rings in bytes while it records; at most the session's `memory`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub ring_memory: u64,
    /// Number of times that a thread continued in another ring because its own was full, while it records.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub overflowed: u64,
    /// Number of statistics that it computes.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub statistics: usize,
    /// Memory of the statistics in bytes; at most a quarter of the session's `memory`, in addition to the rings.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub statistic_memory: u64,
    /// Directory of its rings while it records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rings: Option<PathBuf>,
}

impl Ack {
    /// The acknowledgement of a process that has done nothing yet.
    #[doc(hidden)]
    pub fn new(process: ProcessKey, name: String) -> Self {
        Self { process, name, ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values in an acknowledgement come from other processes, and must not cause an overflow panic.
    #[test]
    fn sums_end_at_the_largest_number() {
        let most = Counters {
            fired: u64::MAX,
            recorded: u64::MAX,
            filtered: u64::MAX,
            suppressed: u64::MAX,
            lost: [("sink".to_owned(), u64::MAX)].into(),
            sink_lost: [("network".to_owned(), u64::MAX)].into(),
            bytes: u64::MAX,
        };
        let mut sum = most.clone();
        sum.add(&most);
        assert_eq!(sum, most);
    }

    #[test]
    fn notices_are_kept_as_texts_and_kinds() -> serde_json::Result<()> {
        let mut ack = Ack::new(ProcessKey::of_this_process(), "p".to_owned());
        let mut file = serde_json::to_value(&ack)?;
        assert_eq!((file.get("notices"), file.get("notice_kinds")), (None, None));
        assert_eq!(serde_json::from_value::<Ack>(file)?, ack);
        ack.notices = vec![Notice::NoRule, Notice::SinkBlocked];
        file = serde_json::to_value(&ack)?;
        let texts: Vec<_> = ack.notices.iter().map(ToString::to_string).collect();
        assert_eq!(file["notices"], serde_json::json!(texts));
        assert_eq!(file["notice_kinds"], serde_json::json!(["no_rule", "sink_blocked"]));
        let read: Ack = serde_json::from_value(file.clone())?;
        let reported = |notice: &Notice| (notice.kind().to_owned(), notice.to_string());
        assert!(read.notices.iter().map(reported).eq(ack.notices.iter().map(reported)), "{read:?}");
        assert!(read.notices.iter().all(|notice| matches!(notice, Notice::Reported { .. })), "{read:?}");
        // Without kinds, the texts suffice.
        file.as_object_mut().map(|file| file.remove("notice_kinds"));
        let read: Ack = serde_json::from_value(file)?;
        assert!(read.notices.iter().map(reported).eq(texts.into_iter().map(|text| (String::new(), text))), "{read:?}");
        Ok(())
    }
}
