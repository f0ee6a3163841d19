//! Why a CTF directory cannot be begun.

use crate::error::mend;
use std::io;
use std::path::PathBuf;

/// A directory that will not do for a trace.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CtfError {
    /// It has something in it.
    #[error("{} is not empty (it holds `{found}`); name a new directory, or remove what is in it", path.display())]
    NotEmpty {
        /// The directory.
        path: PathBuf,
        /// One of its entries.
        found: String,
    },
    /// It is something else.
    #[error("{} is not a directory; name a directory, it is made if it does not exist", path.display())]
    NotADirectory {
        /// What was named.
        path: PathBuf,
    },
    /// It cannot be made, or not be looked into.
    #[error("cannot {action} {}: {source}{}", path.display(), mend(source))]
    Io {
        /// What was tried: `make`, `open`, `read`, `find`.
        action: &'static str,
        /// The directory.
        path: PathBuf,
        /// What the operating system answered.
        source: io::Error,
    },
}
