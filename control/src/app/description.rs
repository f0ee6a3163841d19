//! The files of a traced process, in code.

use crate::boot_file::boot_id;
use crate::catalog::Catalog;
use crate::process::{self, ProcessKey, this_process};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tracepoint_core::field::FieldDescriptor;
use tracepoint_core::{Level, Location, Marker, Tracepoint};

/// Who a traced process is: `process.json`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ApplicationInfo {
    /// Its id, as it sees it itself.
    pub pid: u32,
    /// When it started, in clock ticks after boot.
    pub started: u64,
    /// The boot of its machine; empty if it is not known.
    pub boot: String,
    /// The inode of its pid namespace, which says where its id means something; 0 if it is not known.
    pub pid_namespace: u64,
    /// Its user's id.
    pub user: u32,
    /// Its short name, as `ps` shows it.
    pub name: String,
    /// The path of its program.
    pub executable: String,
    /// The machine's name.
    pub hostname: String,
    /// What it was given by its platform, in one line.
    pub platform: String,
    /// What was in its `TRACEPOINT_TAG`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// The version of the library in it.
    pub library: String,
}

impl ApplicationInfo {
    /// This process.
    pub(crate) fn of_this_process(tag: Option<String>) -> Self {
        let process = this_process();
        Self {
            pid: process.pid,
            started: process::started(),
            boot: boot_id().map(|boot| boot.to_string()).unwrap_or_default(),
            pid_namespace: process::pid_namespace(),
            user: rustix::process::geteuid().as_raw(),
            name: process.name,
            executable: process.executable,
            hostname: process.hostname,
            platform: tracepoint_core::platform().to_string(),
            tag,
            library: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }

    /// What tells it from all others of its boot.
    pub fn key(&self) -> ProcessKey {
        ProcessKey { pid: self.pid, started: self.started }
    }
}

/// What kind of hook it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum TracepointKind {
    /// A tracepoint with fields, which can be recorded.
    #[default]
    Event,
    /// A marker written by hand, which can be recorded.
    Marker,
    /// A tracepoint without fields: its probes alone see it.
    Hook,
}

/// A tracepoint: an entry of `tracepoints.json`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct TracepointInfo {
    /// `provider:name`.
    pub name: String,
    /// What kind of hook it is.
    pub kind: TracepointKind,
    /// How important it is.
    pub level: String,
    /// The arguments that its probes see.
    pub arguments: Vec<ArgumentInfo>,
    /// The condition of the declaration; empty if there is none.
    pub condition: String,
    /// What is recorded.
    pub fields: Vec<FieldInfo>,
    /// What its author says of it; may be empty.
    pub doc: String,
    /// Where it is declared: file and line.
    pub declared: String,
}

impl TracepointInfo {
    /// Whether it can be recorded.
    pub fn is_event(&self) -> bool {
        self.kind != TracepointKind::Hook
    }

    /// Its level; the default one if it has none that is known.
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
    /// Its type, as it was written.
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
    /// Its type, as it stands in a field block.
    #[serde(rename = "type")]
    pub ty: String,
}

/// What is on in a process: `status.json`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct AppStatus {
    /// The tokens of the last bells that were answered.
    pub(crate) answered: Vec<String>,
    /// The tracepoints and markers that are on, for whomever.
    pub on: Vec<String>,
    /// How often events fired in sessions that are controlled from outside and record now.
    pub fired: BTreeMap<String, u64>,
    /// What the platform gives, in one line: as of now.
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
        condition: tracepoint.descriptor().parts.condition.to_owned(),
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
    fields.iter().map(|field| FieldInfo { name: field.name.to_owned(), ty: field.ty.to_string() }).collect()
}

fn declared(location: Location) -> String {
    format!("{}:{}", location.file, location.line)
}
