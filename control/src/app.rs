//! The files in which a traced process describes itself, in `apps/PID-START/` of the run directory.
//!
//! `docs/format-run-directory.md` describes the files. Agents write them, controllers read them; unknown members are ignored.

mod description;
mod dirs;

pub(crate) use description::describe_tracepoints;
pub use description::{AppStatus, ApplicationInfo, ArgumentInfo, FieldInfo, TracepointInfo, TracepointKind};
pub(crate) use dirs::{description, is_alive, is_held, key, remove, remove_stale};

use crate::private_dir::PrivateDir;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io;

/// Subdirectories of the run directory.
pub(crate) const APPS: &str = "apps";
pub(crate) const SESSIONS: &str = "sessions";

/// The files of a traced process.
pub(crate) const PROCESS: &str = "process.json";
pub(crate) const TRACEPOINTS: &str = "tracepoints.json";
pub(crate) const STATUS: &str = "status.json";
pub(crate) const BELL: &str = "bell";

/// The files of a session.
pub(crate) const SESSION: &str = "session.toml";
pub(crate) const LOG: &str = "log";
/// The directory of the states of its triggers.
pub(crate) const TRIGGERS: &str = "triggers";
/// Beside the rings of a process: the triggers of a session in code.
pub(crate) const TRIGGERS_FILE: &str = "triggers.toml";

/// Maximum length of a file that is read, in bytes.
const MAX_JSON: u64 = 64 << 20;

/// Reads a JSON file.
pub(crate) fn read_json<T: DeserializeOwned>(dir: &PrivateDir, name: &str) -> io::Result<T> {
    Ok(serde_json::from_slice(&dir.read_file(name, MAX_JSON)?)?)
}

/// Replaces a JSON file of which this process is the only writer.
pub(crate) fn replace_json<T: Serialize>(dir: &PrivateDir, name: &str, value: &T) -> io::Result<()> {
    dir.replace(name, &serde_json::to_vec(value)?)
}

/// Does the same, also on a full file system.
pub(crate) fn replace_json_with_spare<T: Serialize>(dir: &PrivateDir, name: &str, value: &T) -> io::Result<()> {
    dir.replace_with_spare(name, &serde_json::to_vec(value)?)
}
