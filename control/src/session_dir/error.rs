//! Why there is no directory for a session's rings.

use crate::private_dir::DirError;
use crate::rundir::RunDirError;
use std::path::PathBuf;

/// There is no place for the files of a session's rings.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RingDirError {
    /// The run directory cannot be used.
    #[error("{0}, or a directory for this session (`.dir(path)`), or keep its rings in memory (`.in_memory()`)")]
    RunDir(#[source] RunDirError),
    /// A directory cannot be made, used or trusted.
    #[error(
        "{0}; name another directory, for this session (`.dir(path)`) or for all (TRACEPOINT_RUN_DIR), or keep its rings in memory \
         (`.in_memory()`)"
    )]
    Dir(#[from] DirError),
    /// The directory is not on a memory file system.
    #[error(
        "{} is on a disk (its file system has the type {file_system:#x}), which stalls the program that is traced when it writes; \
         name a directory on tmpfs, for this session (`.dir(path)`) or for all (TRACEPOINT_RUN_DIR), keep the rings in memory \
         (`.in_memory()`), or put up with stalls (`.allow_disk_rings(true)`)",
        path.display()
    )]
    Disk {
        /// The directory.
        path: PathBuf,
        /// The kernel's number for the type of its file system.
        file_system: u64,
    },
}

impl RingDirError {
    /// Whether a directory was not there that should have been.
    pub(super) fn is_missing(&self) -> bool {
        matches!(self, Self::Dir(error) if error.is_missing())
    }
}
