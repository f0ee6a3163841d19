//! Why a store could not be written or changed.

use std::io;
use std::path::{Path, PathBuf};

use parquet::errors::ParquetError;
use thiserror::Error;
use tracepoint_tables::GivenTwice;

/// Why a store could not be written or changed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StoreError {
    /// A file or directory cannot be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A Parquet file cannot be read or written.
    #[error("{}: {source}", path.display())]
    Parquet {
        /// Which.
        path: PathBuf,
        /// Why not.
        source: ParquetError,
    },
    /// The directory has other contents than a store.
    #[error("{} is not a store: {reason}; name a new or an empty directory, or a store", path.display())]
    NotAStore {
        /// The directory.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// A trace is in the store already, and would be counted twice.
    #[error("the trace {trace} is in {} already, and would be counted twice; name another store", path.display())]
    AlreadyStored {
        /// The store.
        path: PathBuf,
        /// The UUID of the trace, and the number of its chunk if it has any.
        trace: String,
    },
    /// A trace is given twice, and would be counted twice.
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
