//! An occurrence of a condition, in the form that actions use.

use super::message::CoreDump;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tracepoint_session_spec::TriggerCondition;
use tracepoint_sinks::{EnvironmentValue, environment_block};

/// An occurrence of a condition. Its entries are in the environment block of the snapshots taken for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Occurrence {
    /// The kind of the condition: [`TriggerCondition::kind`].
    pub condition: String,
    /// The process concerned; 0 if the occurrence concerns the session. Part of the names of snapshots.
    pub pid: u32,
    /// The time of the occurrence. In JSON: `time_ns`, in ns since 1970.
    #[serde(rename = "time_ns", with = "nanoseconds")]
    pub time: SystemTime,
    /// Number of occurrences since the last one that was acted on. They are counted, but not acted on.
    #[serde(default)]
    pub skipped: u64,
    /// Details, by names that are valid in an environment block. In JSON: an object.
    #[serde(default, with = "object")]
    pub entries: Vec<(String, Detail)>,
}

/// The value of an entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum Detail {
    /// A number.
    Number(u64),
    /// A text; negative numbers and fractions are texts as well.
    Text(String),
}

impl Occurrence {
    /// An occurrence of `when` in the process `pid`, with the entries `trigger_condition`, `trigger_pid` and `trigger_time`.
    pub fn new(when: &TriggerCondition, pid: u32, time: SystemTime) -> Self {
        let mut occurrence = Self { condition: when.kind().to_owned(), pid, time, skipped: 0, entries: Vec::new() };
        occurrence.add("trigger_condition", Detail::Text(when.to_string()));
        occurrence.add("trigger_pid", Detail::Number(pid.into()));
        occurrence.add("trigger_time", Detail::time(time));
        occurrence
    }

    /// A core dump, with the entries `core_pid`, `core_uid` and so on.
    pub fn core_dump(core: &CoreDump) -> Self {
        let time = core.time.unwrap_or_else(SystemTime::now);
        let condition = TriggerCondition::CoreDump.kind().to_owned();
        let mut occurrence = Self { condition, pid: core.pid, time, skipped: 0, entries: Vec::new() };
        for (name, number) in [("core_pid", core.pid), ("core_uid", core.uid), ("core_gid", core.gid)] {
            occurrence.add(name, Detail::Number(number.into()));
        }
        for (name, text) in [("core_exe", &core.executable), ("core_host", &core.host)] {
            occurrence.add(name, Detail::Text(text.to_string_lossy().into_owned()));
        }
        occurrence.add("core_time", Detail::time(time));
        if let Some(signal) = core.signal {
            occurrence.add("core_signal", Detail::Number(signal.into()));
        }
        occurrence
    }

    /// Adds an entry.
    pub fn add(&mut self, name: impl Into<String>, detail: Detail) {
        self.entries.push((name.into(), detail));
    }

    /// Formats an additional environment block for the metadata of a trace.
    pub(super) fn environment(&self) -> String {
        fn entry((name, detail): &(String, Detail)) -> (&str, EnvironmentValue<'_>) {
            match detail {
                Detail::Number(number) => (name, EnvironmentValue::Number(*number)),
                Detail::Text(text) => (name, EnvironmentValue::Text(text)),
            }
        }
        environment_block(&self.entries.iter().map(entry).collect::<Vec<_>>())
    }
}

impl Detail {
    /// A time, as text.
    pub(super) fn time(time: SystemTime) -> Self {
        // Years beyond 9999 cannot be formatted.
        let latest = UNIX_EPOCH + Duration::from_secs(253_402_300_799);
        Self::Text(humantime::format_rfc3339_nanos(time.clamp(UNIX_EPOCH, latest)).to_string())
    }
}

impl fmt::Display for Detail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Text(text) => text.fmt(f),
        }
    }
}

/// A time in JSON.
mod nanoseconds {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use std::time::{Duration, SystemTime, UNIX_EPOCH};

    pub(super) fn serialize<S: Serializer>(time: &SystemTime, serializer: S) -> Result<S::Ok, S::Error> {
        let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_nanos()).unwrap_or(u64::MAX).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SystemTime, D::Error> {
        u64::deserialize(deserializer).map(|ns| UNIX_EPOCH + Duration::from_nanos(ns))
    }
}

/// The entries in JSON.
mod object {
    use super::Detail;
    use serde::{Deserialize, Deserializer, Serializer};
    use std::collections::BTreeMap;

    pub(super) fn serialize<S: Serializer>(entries: &[(String, Detail)], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(entries.iter().map(|(name, detail)| (name, detail)))
    }

    /// The entries come from other processes, and are written to environment blocks: invalid names are left out.
    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<(String, Detail)>, D::Error> {
        let entries = BTreeMap::<String, Detail>::deserialize(deserializer)?;
        let is_name = |name: &str| {
            !name.starts_with(|c: char| c.is_ascii_digit())
                && !name.is_empty()
                && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        };
        Ok(entries.into_iter().filter(|(name, _)| is_name(name)).collect())
    }
}
