//! The contents of the files of a traced process.

use crate::boot_file::boot_id;
use crate::catalog::Catalog;
use crate::process::{self, ProcessKey, this_process};
use crate::sink_features::built_sinks;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tracepoint_core::field::FieldDescriptor;
use tracepoint_core::{Level, Location, Marker, Tracepoint};

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
    /// The inode of its pid namespace, in which its pid is valid; 0 if unknown.
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
    /// The kinds of sinks that it can have: it was built with their features. `None` of a library that does not tell: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sinks: Option<Vec<String>>,
}

impl ApplicationInfo {
    /// Describes this process.
    pub(crate) fn of_this_process(tag: Option<String>) -> Self {
        let process = this_process();
        Self {
            pid: process.pid,
            started: process::started(),
            boot: boot_id().map(|boot| boot.to_string()).unwrap_or_default(),
            pid_namespace: process::own_pid_namespace(),
            user: rustix::process::geteuid().as_raw(),
            name: process.name,
            executable: process.executable,
            hostname: process.hostname,
            platform: tracepoint_core::platform().to_string(),
            tag,
            library: env!("CARGO_PKG_VERSION").to_owned(),
            sinks: Some(built_sinks()),
        }
    }

    /// Describes a process of which only the id is known.
    pub(crate) fn unknown(key: ProcessKey) -> Self {
        Self { pid: key.pid, started: key.started, name: "?".to_owned(), ..Self::default() }
    }

    /// Identifies the process within its boot.
    pub fn key(&self) -> ProcessKey {
        ProcessKey { pid: self.pid, started: self.started }
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
    /// A tracepoint without fields, which only probes see.
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
    /// The arguments that its probes get.
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
    /// Whether it can be recorded.
    pub fn is_event(&self) -> bool {
        self.kind != TracepointKind::Hook
    }

    /// Its level; the default level if the text is unknown.
    pub(crate) fn parsed_level(&self) -> Level {
        self.level.parse().unwrap_or_default()
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

/// Current status of a process: `status.json`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct AppStatus {
    /// The tokens of the last bells that the agent answered.
    pub(crate) answered: Vec<String>,
    /// The enabled tracepoints and markers, whatever enabled them.
    pub on: Vec<String>,
    /// Number of times that events fired in remotely controlled sessions that record now.
    pub fired: BTreeMap<String, u64>,
    /// The tracing features that its platform supports now, in one line.
    pub platform: String,
}

/// All tracepoints and markers of this program.
pub(crate) fn describe_tracepoints(catalog: &Catalog) -> Vec<TracepointInfo> {
    let mut all: Vec<_> = catalog.tracepoints().map(of_tracepoint).collect();
    all.extend(catalog.markers().filter(|marker| !marker.is_of_tracepoint()).map(of_marker));
    all.sort_by(|a, b| (&a.name, &a.declared).cmp(&(&b.name, &b.declared)));
    all
}

fn of_tracepoint(tracepoint: &'static Tracepoint) -> TracepointInfo {
    let marker = tracepoint.marker();
    let argument = |a: &tracepoint_core::Argument| ArgumentInfo { name: a.name.to_owned(), ty: a.ty.to_owned() };
    TracepointInfo {
        name: tracepoint.full_name(),
        kind: if marker.is_some() { TracepointKind::Event } else { TracepointKind::Hook },
        level: tracepoint.level().to_string(),
        arguments: tracepoint.arguments().iter().map(argument).collect(),
        condition: tracepoint.condition().to_owned(),
        fields: marker.map(|marker| fields(marker.fields())).unwrap_or_default(),
        doc: tracepoint.doc().to_owned(),
        declared: declared(tracepoint.location()),
    }
}

fn of_marker(marker: &'static Marker) -> TracepointInfo {
    TracepointInfo {
        name: marker.full_name(),
        kind: TracepointKind::Marker,
        level: marker.level().to_string(),
        fields: fields(marker.fields()),
        doc: marker.doc().to_owned(),
        declared: declared(marker.location()),
        ..TracepointInfo::default()
    }
}

fn fields(fields: &[FieldDescriptor]) -> Vec<FieldInfo> {
    let field = |field: &FieldDescriptor| FieldInfo {
        name: field.name.to_owned(),
        ty: field.ty.to_string(),
        doc: field.doc.to_owned(),
    };
    fields.iter().map(field).collect()
}

fn declared(location: Location) -> String {
    format!("{}:{}", location.file, location.line)
}
