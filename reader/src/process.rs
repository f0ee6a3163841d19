//! Identifies a process by its id and start time, regardless of the PID and time namespaces in which they are read, and detects if it is alive.
//!
//! [`ProcessKey`] names directories and files of processes.

#[cfg_attr(not(target_os = "linux"), path = "process/elsewhere.rs")]
mod proc;

use crate::time_namespace::is_same_start;
pub use proc::{exists, exit_status, own_pid_namespace, pid_namespace, started, started_at};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Identifies a process within a boot: its pid, and its start time in clock ticks after boot. Written `PID-START`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
#[non_exhaustive]
pub struct ProcessKey {
    /// Its pid in its own pid namespace.
    pub pid: u32,
    /// Its start time, in clock ticks after boot, as read in the initial time namespace.
    pub started: u64,
}

impl ProcessKey {
    /// The process with this pid and this start time.
    #[doc(hidden)]
    pub const fn new(pid: u32, started: u64) -> Self {
        Self { pid, started }
    }

    /// This process.
    pub fn of_this_process() -> Self {
        Self { pid: std::process::id(), started: started() }
    }

    /// The process that a directory belongs to, from the directory's name: `PID-START` or `PID-START-NUMBER`.
    #[doc(hidden)]
    pub fn of_directory(name: &str) -> Option<Self> {
        let mut parts = name.split('-');
        let key = Self { pid: parts.next()?.parse().ok()?, started: parts.next()?.parse().ok()? };
        let number = parts.next().map(str::parse::<u64>);
        (matches!(number, None | Some(Ok(_))) && parts.next().is_none()).then_some(key)
    }

    /// True if both are the same process, regardless of the time namespaces in which they were read.
    #[doc(hidden)]
    pub const fn is_same(self, other: Self) -> bool {
        self.pid == other.pid && is_same_start(self.started, other.started)
    }

    /// True if the process exists. Valid only for a pid of this process's pid namespace.
    pub fn exists(self) -> bool {
        exists(self.pid, self.started)
    }
}

impl fmt::Display for ProcessKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.pid, self.started)
    }
}

impl From<ProcessKey> for String {
    fn from(key: ProcessKey) -> Self {
        key.to_string()
    }
}

/// The text is not a [`ProcessKey`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a process is written PID-START, as in `tracectl list --json`")]
#[non_exhaustive]
pub struct ProcessKeyError;

impl FromStr for ProcessKey {
    type Err = ProcessKeyError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let key = |(pid, started): (&str, &str)| Some(Self { pid: pid.parse().ok()?, started: started.parse().ok()? });
        text.split_once('-').and_then(key).ok_or(ProcessKeyError)
    }
}

impl TryFrom<String> for ProcessKey {
    type Error = ProcessKeyError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}
