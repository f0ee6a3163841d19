//! The error of writing a directory.

use crate::error::ReadError;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Received events could not be written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DirectoryError {
    /// The directory is not empty.
    #[error("{} is not empty (it holds `{found}`); name a new directory, or remove what is in it", path.display())]
    NotEmpty {
        /// The directory.
        path: PathBuf,
        /// One of its entries.
        found: String,
    },
    /// A file or directory cannot be written.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// The file or directory.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The server's metadata or account cannot be read.
    #[error("the server sent invalid data: {0}")]
    Metadata(#[from] ReadError),
}

impl DirectoryError {
    pub(super) fn write(path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| Self::Write { path, source }
    }
}
