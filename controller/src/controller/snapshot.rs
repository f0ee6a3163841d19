//! Snapshots of a session, taken by a controller.

use super::{ControlError, NamedSession};
use std::path::Path;
use tracepoint_session_io::SnapshotSummary;

impl NamedSession<'_> {
    /// Writes the contents of the session's rings as CTF traces into `out`: the rings of running processes, which continue, and of
    /// processes that died; and the packets that CTF and dt sinks have kept. It does not need the help of the processes, and does not stop
    /// them. `out` must be empty if it exists, and gets its contents when they are complete.
    ///
    /// # Errors
    ///
    /// [`ControlError::NoSession`] if the session was removed; [`ControlError::Snapshot`] if no process has rings, `out` is not empty or
    /// cannot be written, or no ring can be read. Nothing is left in `out` in this case.
    pub fn snapshot(&self, out: impl AsRef<Path>) -> Result<SnapshotSummary, ControlError> {
        let out = out.as_ref();
        self.dir()?;
        let taken = tracepoint_reader::recover::snapshot(&self.path(), out).map_err(ControlError::Snapshot)?;
        Ok(SnapshotSummary::of(out, taken))
    }
}
