//! The process that owns a session: the session ends when it exits.

use crate::process::{self, ProcessKey};
use serde::{Deserialize, Serialize};

/// A process, and the pid namespace in which its pid is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Owner {
    pub(crate) process: ProcessKey,
    pub(crate) namespace: u64,
}

impl Owner {
    /// This process.
    pub(crate) fn this_process() -> Self {
        Self { process: ProcessKey::of_this_process(), namespace: process::pid_namespace() }
    }

    /// Whether its pid is valid in this process's pid namespace.
    pub(crate) fn is_comparable(&self) -> bool {
        self.namespace != 0 && self.namespace == process::pid_namespace()
    }

    /// Whether the process is known to have exited.
    pub(crate) fn is_gone(&self) -> bool {
        self.is_comparable() && !self.process.exists()
    }
}
