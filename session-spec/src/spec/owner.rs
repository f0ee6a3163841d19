//! The process that owns a session: the session ends when it exits.

use serde::{Deserialize, Serialize};
use tracepoint_reader::process::{self, ProcessKey};

/// A process, the pid namespace in which its pid is valid, and whether it holds the session's pipe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Owner {
    /// The process.
    pub process: ProcessKey,
    pub(crate) namespace: u64,
    /// True if the process holds the pipe of the session.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pipe: bool,
}

impl Owner {
    /// This process.
    pub fn this_process(pipe: bool) -> Self {
        Self { process: ProcessKey::of_this_process(), namespace: process::pid_namespace(), pipe }
    }

    /// Returns whether it is this process.
    pub fn is_this_process(&self) -> bool {
        self.is_comparable() && self.process == ProcessKey::of_this_process()
    }

    /// Returns whether its pid is valid in this process's pid namespace.
    pub fn is_comparable(&self) -> bool {
        self.namespace != 0 && self.namespace == process::pid_namespace()
    }
}
