//! What stops the writing of a directory.

use crate::error::ReadError;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// What was received could not be written down.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DirectoryError {
    /// The directory has something in it.
    #[error("{} is not empty (it holds `{found}`); name a new directory, or remove what is in it", path.display())]
    NotEmpty {
        /// The directory.
        path: PathBuf,
        /// One of its entries.
        found: String,
    },
    /// The system did not take it.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// The file or directory.
        path: PathBuf,
        /// What the system answered.
        source: io::Error,
    },
    /// The server's metadata or account cannot be read.
    #[error("the server sent what cannot be read: {0}")]
    Metadata(#[from] ReadError),
}

impl DirectoryError {
    pub(super) fn write(path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| Self::Write { path, source }
    }
}
