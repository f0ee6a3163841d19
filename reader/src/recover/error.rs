//! The error of a recovery.

use crate::error::ReadError;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Nothing could be recovered, or the trace could not be written.
///
/// Damage in one ring or output is not an error: the rest is recovered, and the damage is reported in
/// [`RecoveredProcess::notes`](super::RecoveredProcess::notes).
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RecoverError {
    /// The metadata, a directory, or all of the rings cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// There are no rings.
    #[error(
        "{}: {reason}; name the directory of a process (`rings/PID-START` of a session), or one above it",
        path.display()
    )]
    NoRings {
        /// The path given by the caller.
        path: PathBuf,
        /// The reason, such as what was found instead.
        reason: String,
    },
    /// No process had begun to record, so there is nothing to recover.
    #[error("{}: no event of the process was switched on yet: nothing is lost, and there is no trace to make", .0.display())]
    NotBegun(PathBuf),
    /// The output is not empty.
    #[error("{} is not empty (it holds `{found}`); name a new directory, or remove what is in it", path.display())]
    NotEmpty {
        /// The directory.
        path: PathBuf,
        /// One of its entries.
        found: String,
    },
    /// The output cannot be written.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// The file or directory.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
}

impl RecoverError {
    pub(crate) fn write(path: &Path) -> impl FnOnce(io::Error) -> Self + '_ {
        move |source| Self::Write { path: path.to_owned(), source }
    }
}
