//! The process with which a session ends.

use crate::process::{self, ProcessKey};
use serde::{Deserialize, Serialize};

/// A process, and the pid namespace in which its id means something.
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

    /// Whether its id means something here.
    pub(crate) fn is_comparable(&self) -> bool {
        self.namespace != 0 && self.namespace == process::pid_namespace()
    }

    /// Whether it is known to be gone.
    pub(crate) fn is_gone(&self) -> bool {
        self.is_comparable() && !self.process.exists()
    }
}
