//! Errors of making a session's ring directory.

use crate::private_dir::DirError;
use crate::rundir::RunDirError;
use std::path::PathBuf;

/// Advice on choosing another place.
const ELSEWHERE: &str = "name another directory, for this session (`.dir(path)`) or for all (TRACEPOINT_RUN_DIR), or keep its rings in memory \
                         (`.in_memory()`)";

/// The directory for a session's rings cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RingDirError {
    /// The run directory cannot be used.
    #[error("{}", .0.reason().with_mend(ELSEWHERE))]
    RunDir(#[source] RunDirError),
    /// A directory cannot be made, used or trusted.
    #[error("{}", .0.with_mend(ELSEWHERE))]
    Dir(#[from] DirError),
    /// The directory is not on a memory file system.
    #[error(
        "{} is on a disk (its file system has the type {file_system:#x}), and writing to a disk stalls the traced program; \
         name a directory on tmpfs, for this session (`.dir(path)`) or for all (TRACEPOINT_RUN_DIR), keep the rings in memory \
         (`.in_memory()`), or accept the stalls (`.allow_disk_rings(true)`)",
        path.display()
    )]
    Disk {
        /// The directory.
        path: PathBuf,
        /// The magic number of its file system.
        file_system: u64,
    },
}

impl RingDirError {
    /// Returns whether a directory did not exist.
    pub(super) fn is_missing(&self) -> bool {
        matches!(self, Self::Dir(error) if error.is_missing())
    }
}
