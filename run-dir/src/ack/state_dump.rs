//! The status of a state dump in an acknowledgement.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Status of a state dump in a session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct StateDumpStatus {
    /// The name under which the dump was registered.
    pub name: String,
    /// Number of completed runs.
    pub ran: u64,
    /// Number of runs that panicked: the state in the trace is incomplete.
    pub panicked: u64,
    /// Number of runs that exceeded the maximum wait of 500 ms. Each continued, and is also counted above once it has returned.
    pub late: u64,
    /// Number of skipped runs: an earlier run had not returned, no thread could be started, no id was left for the enclosing events, or a
    /// sink that must receive their descriptions blocked. The state is not in the trace.
    pub skipped: u64,
}

impl StateDumpStatus {
    /// Returns whether the trace may lack some state.
    pub const fn is_incomplete(&self) -> bool {
        self.panicked > 0 || self.late > 0 || self.skipped > 0
    }
}

impl fmt::Display for StateDumpStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "state dump {}: ran {}", self.name, self.ran)?;
        for (count, what) in [(self.panicked, "panicked"), (self.late, "late"), (self.skipped, "skipped")] {
            if count > 0 {
                write!(f, ", {what} {count}")?;
            }
        }
        Ok(())
    }
}
