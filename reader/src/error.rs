//! The error of opening a trace.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// A trace, its metadata or its account could not be read at all.
///
/// Damage inside one stream is not an error: it is an [`Item::Damage`](crate::Item::Damage) among the events, so that the other streams
/// remain readable.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReadError {
    /// A file or a directory could not be read.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The path holds no trace.
    #[error(
        "{}: {reason}; name a directory that holds a file called `metadata`, one with such directories below it, or a dt file",
        path.display()
    )]
    NotATrace {
        /// The path given by the caller.
        path: PathBuf,
        /// The reason, such as what was found instead.
        reason: String,
    },
    /// The metadata is not valid.
    #[error("{}: line {line}, byte {offset}: {reason}", path.display())]
    Metadata {
        /// The metadata file, or `metadata` for bytes in memory.
        path: PathBuf,
        /// Line of the text, from 1; 0 if the error is not in the text (a bad metadata packet).
        line: u64,
        /// Byte offset: in the text, or in the file when `line` is 0.
        offset: u64,
        /// A description of the fault and, where possible, how to fix it.
        reason: String,
    },
    /// The account file is not valid.
    #[error("{}: {reason}", path.display())]
    Account {
        /// The account file.
        path: PathBuf,
        /// A description of the fault, with line and column where the text is malformed.
        reason: String,
    },
    /// The file is not a valid ring.
    #[error("{}: byte {offset}: {reason}", path.display())]
    Ring {
        /// The ring file, or `ring` for bytes in memory.
        path: PathBuf,
        /// Byte offset in it.
        offset: u64,
        /// A description of the fault and, where possible, how to fix it.
        reason: String,
    },
    /// The file is not a valid dt file.
    #[cfg(feature = "traces")]
    #[error(transparent)]
    Dt(#[from] datatrace::ReadError),
    /// The dt file holds no trace: it has no metadata.
    #[error(
        "{}: this dt file does not say what is in it, so it cannot be shown as a trace; `tracectl dt dump {}` shows its bytes",
        .0.display(), .0.display()
    )]
    PlainDt(PathBuf),
    /// The directory holds rings, from which `recover` makes a trace.
    #[error(
        "{}: these are the rings of a process, not a trace yet; `tracectl recover {} -o OUT` makes one of them",
        .0.display(), .0.display()
    )]
    Rings(PathBuf),
}

impl ReadError {
    pub(crate) fn io(path: &Path, source: io::Error) -> Self {
        Self::Io { path: path.to_owned(), source }
    }

    /// Sets the file's path in an error about metadata that was parsed from memory.
    pub(crate) fn in_file(self, file: &Path) -> Self {
        match self {
            Self::Metadata { line, offset, reason, .. } => {
                Self::Metadata { path: file.to_owned(), line, offset, reason }
            }
            other => other,
        }
    }
}
