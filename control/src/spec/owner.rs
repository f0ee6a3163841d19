//! The process that owns a session: the session ends when it exits.

use crate::owner_pipe;
use crate::private_dir::PrivateDir;
use crate::process::{self, ProcessKey};
use serde::{Deserialize, Serialize};

/// A process, the pid namespace in which its pid is valid, and whether it holds the session's [pipe](crate::owner_pipe).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Owner {
    pub(crate) process: ProcessKey,
    pub(crate) namespace: u64,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) pipe: bool,
}

impl Owner {
    /// This process.
    pub(crate) fn this_process(pipe: bool) -> Self {
        Self { process: ProcessKey::of_this_process(), namespace: process::pid_namespace(), pipe }
    }

    /// Whether it is this process.
    pub(crate) fn is_this_process(&self) -> bool {
        self.is_comparable() && self.process == ProcessKey::of_this_process()
    }

    /// Whether its pid is valid in this process's pid namespace.
    pub(crate) fn is_comparable(&self) -> bool {
        self.namespace != 0 && self.namespace == process::pid_namespace()
    }

    /// Whether the process is known to have exited, judged by its id.
    pub(crate) fn is_gone(&self) -> bool {
        self.is_comparable() && !self.process.exists()
    }

    /// Whether the owner of the session in `dir` has exited; `None` if that cannot be known.
    pub(crate) fn has_ended(&self, dir: &PrivateDir) -> Option<bool> {
        let pipe = self.pipe.then(|| owner_pipe::watch(dir).ok()).flatten();
        pipe.map(|pipe| pipe.is_none()).or_else(|| self.is_comparable().then(|| self.is_gone()))
    }
}
