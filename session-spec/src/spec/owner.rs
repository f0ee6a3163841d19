//! The process that owns a session: the session ends when it exits.

use serde::{Deserialize, Serialize};
use tracepoint_reader::process::ProcessKey;

/// A process, the pid namespace in which its pid is valid, and whether it holds the session's pipe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Owner {
    /// The process.
    pub process: ProcessKey,
    /// Its pid namespace; 0 if unknown.
    pub namespace: u64,
    /// True if the process holds the pipe of the session.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pipe: bool,
}
