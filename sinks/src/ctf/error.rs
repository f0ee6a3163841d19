//! Errors of the output directory.

use crate::error::mend;
use std::io;
use std::path::PathBuf;

/// Error: a directory cannot take a trace.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CtfError {
    /// It is not empty.
    #[error("{} is not empty (it holds `{found}`); name a new directory, or remove what is in it", path.display())]
    NotEmpty {
        /// The directory.
        path: PathBuf,
        /// One of its entries.
        found: String,
    },
    /// The path is not a directory.
    #[error("{} is not a directory; name a directory; it is created if it does not exist", .0.display())]
    NotADirectory(PathBuf),
    /// It cannot be created or read.
    #[error("cannot {action} {}: {source}{}", path.display(), mend(source))]
    Io {
        /// The action: `make`, `open`, `read`, `find` or `remove`.
        action: &'static str,
        /// The directory.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
}
