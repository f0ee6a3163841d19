//! The contents of the files of a traced process.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tracepoint_reader::process::ProcessKey;

/// Identity of a traced process: `process.json`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ApplicationInfo {
    /// Its pid in its own pid namespace.
    pub pid: u32,
    /// When it started, in clock ticks after boot.
    pub started: u64,
    /// The boot id of its machine; empty if unknown.
    pub boot: String,
    /// The inode number of its pid namespace; 0 if unknown.
    pub pid_namespace: u64,
    /// Its user's id.
    pub user: u32,
    /// Its short name, as `ps` shows it.
    pub name: String,
    /// The path of its executable.
    pub executable: String,
    /// The host name of its machine.
    pub hostname: String,
    /// The tracing features that its platform supports, in one line.
    pub platform: String,
    /// The value of its `TRACEPOINT_TAG`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// The version of the tracing library that it is linked with.
    pub library: String,
    /// The kinds of sinks that its build supports. `None` for a library that does not report them: all kinds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sinks: Option<Vec<String>>,
    /// True if its events can wait for a recorder in another process, by the policy `wait`.
    pub waits_for_recorder: bool,
}

impl ApplicationInfo {
    /// Describes a process by its id, if nothing else is known.
    #[doc(hidden)]
    pub fn unknown(key: ProcessKey) -> Self {
        Self { pid: key.pid, started: key.started, name: "?".to_owned(), ..Self::default() }
    }

    /// Identifies the process within its boot.
    pub fn key(&self) -> ProcessKey {
        ProcessKey::new(self.pid, self.started)
    }
}

/// Kind of a tracepoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum TracepointKind {
    /// A tracepoint with fields, which can be recorded.
    #[default]
    Event,
    /// A marker written by hand, which can be recorded.
    Marker,
    /// A tracepoint without fields: only probes receive it.
    Hook,
}

/// Description of a tracepoint: an entry of `tracepoints.json`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct TracepointInfo {
    /// `provider:name`.
    pub name: String,
    /// Its kind.
    pub kind: TracepointKind,
    /// Its level.
    pub level: String,
    /// The arguments of its probes.
    pub arguments: Vec<ArgumentInfo>,
    /// The condition of its declaration; empty if there is none.
    pub condition: String,
    /// The recorded fields.
    pub fields: Vec<FieldInfo>,
    /// Its documentation; may be empty.
    pub doc: String,
    /// Location of its declaration: file and line.
    pub declared: String,
}

impl TracepointInfo {
    /// Returns whether it can be recorded.
    pub fn is_event(&self) -> bool {
        self.kind != TracepointKind::Hook
    }
}

/// An argument of a tracepoint.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ArgumentInfo {
    /// Its name.
    pub name: String,
    /// Its type, as declared.
    #[serde(rename = "type")]
    pub ty: String,
}

impl ArgumentInfo {
    /// An argument of this name and type.
    #[doc(hidden)]
    pub fn new(name: &str, ty: &str) -> Self {
        Self { name: name.to_owned(), ty: ty.to_owned() }
    }
}

/// A field of an event.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct FieldInfo {
    /// Its name.
    pub name: String,
    /// Its type, as written in a field block.
    #[serde(rename = "type")]
    pub ty: String,
    /// Its documentation; may be empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub doc: String,
}

impl FieldInfo {
    /// A field of this name, type and documentation.
    #[doc(hidden)]
    pub fn new(name: &str, ty: &str, doc: &str) -> Self {
        Self { name: name.to_owned(), ty: ty.to_owned(), doc: doc.to_owned() }
    }
}

/// Current status of a process: `status.json`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct AppStatus {
    /// The tokens of the last bells that the agent answered.
    #[doc(hidden)]
    pub answered: Vec<String>,
    /// The enabled tracepoints and markers, enabled by any means.
    pub on: Vec<String>,
    /// Number of fired events in remotely controlled sessions that record now.
    pub fired: BTreeMap<String, u64>,
    /// The tracing features that its platform supports now, in one line.
    pub platform: String,
}
