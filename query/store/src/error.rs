//! Errors of writing or changing a store.

use std::io;
use std::path::{Path, PathBuf};

use parquet::errors::ParquetError;
use thiserror::Error;
use tracepoint_tables::GivenTwice;

/// An error of writing or changing a store.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StoreError {
    /// A file or directory cannot be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A Parquet file cannot be read or written.
    #[error("{}: {source}", path.display())]
    Parquet {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: ParquetError,
    },
    /// The directory has contents, but is not a store.
    #[error("{} is not a store: {reason}; name a new or an empty directory, or a store", path.display())]
    NotAStore {
        /// The directory.
        path: PathBuf,
        /// The fault.
        reason: String,
    },
    /// The store has the trace already; storing it again would count it twice.
    #[error("the trace {trace} is in {} already, and would be counted twice; name another store", path.display())]
    AlreadyStored {
        /// The store.
        path: PathBuf,
        /// The UUID of the trace, and the number of its chunk if it has one.
        trace: String,
    },
    /// The same trace was given twice, and would be counted twice.
    #[error(transparent)]
    GivenTwice(GivenTwice),
}

impl StoreError {
    pub(crate) fn io(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { path, source }
    }

    pub(crate) fn parquet(path: &Path) -> impl FnOnce(ParquetError) -> Self {
        let path = path.to_owned();
        move |source| Self::Parquet { path, source }
    }
}
