//! Snapshots of a session, from outside.

use super::{ControlError, NamedSession};
use std::path::Path;
use tracepoint_session_io::SnapshotSummary;

impl NamedSession<'_> {
    /// Writes what the rings of the session hold as CTF traces into `out`: those of running processes, which go on, and of processes that
    /// died; and the packets that CTF and dt sinks have kept. It needs no help of the processes, and stops none of them. `out` must be
    /// empty if it exists, and gets its contents when they are complete.
    ///
    /// # Errors
    ///
    /// [`ControlError::NoSession`] if the session was removed; [`ControlError::Snapshot`] if no process has rings, `out` is not empty or
    /// cannot be written, or no ring can be read. Nothing is left in `out` then.
    pub fn snapshot(&self, out: impl AsRef<Path>) -> Result<SnapshotSummary, ControlError> {
        let out = out.as_ref();
        self.dir()?;
        let taken = tracepoint_reader::recover::snapshot(&self.path(), out).map_err(ControlError::Snapshot)?;
        Ok(SnapshotSummary::of(out, taken))
    }
}
