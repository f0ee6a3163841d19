//! An occurrence of a condition, as actions get to know it.

use super::message::CoreDump;
use crate::spec::When;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tracepoint_sinks::{EnvironmentValue, environment_block};

/// An occurrence of a condition. Its entries are in the environment block of the snapshots that are taken for it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Occurrence {
    /// The kind of the condition: [`When::kind`].
    pub condition: &'static str,
    /// The process that it is about; 0 if it is about the session. Names snapshots.
    pub pid: u32,
    /// When it occurred.
    pub time: SystemTime,
    /// How many occurrences came before it since the last one that was acted on, and are counted without being acted on.
    pub skipped: u64,
    /// What is known about it, by names that are valid in an environment block.
    pub entries: Vec<(String, Detail)>,
}

/// The value of an entry.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Detail {
    /// A number.
    Number(u64),
    /// A text; negative numbers and fractions are texts as well.
    Text(String),
}

impl Occurrence {
    /// An occurrence of `when` in the process `pid`, with the entries `trigger_condition`, `trigger_pid` and `trigger_time`.
    pub fn new(when: &When, pid: u32, time: SystemTime) -> Self {
        let mut occurrence = Self { condition: when.kind(), pid, time, skipped: 0, entries: Vec::new() };
        occurrence.add("trigger_condition", Detail::Text(when.to_string()));
        occurrence.add("trigger_pid", Detail::Number(pid.into()));
        occurrence.add("trigger_time", Detail::time(time));
        occurrence
    }

    /// A core dump, with the entries `core_pid`, `core_uid` and so on.
    pub fn core_dump(core: &CoreDump) -> Self {
        let time = core.time.unwrap_or_else(SystemTime::now);
        let mut occurrence =
            Self { condition: When::CoreDump.kind(), pid: core.pid, time, skipped: 0, entries: Vec::new() };
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

    /// A further environment block for the metadata of a trace.
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
    fn time(time: SystemTime) -> Self {
        // Years beyond 9999 cannot be formatted.
        let latest = UNIX_EPOCH + Duration::from_secs(253_402_300_799);
        Self::Text(humantime::format_rfc3339_nanos(time.clamp(UNIX_EPOCH, latest)).to_string())
    }
}
