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
    #[error("{path}: {1}", path = .0.display())]
    Io(PathBuf, #[source] io::Error),
    /// A Parquet file cannot be read or written.
    #[error("{path}: {1}", path = .0.display())]
    Parquet(PathBuf, #[source] ParquetError),
    /// The directory has contents, but is not a store, for this reason.
    #[error("{path} is not a store: {1}; name a new or an empty directory, or a store", path = .0.display())]
    NotAStore(PathBuf, String),
    /// The store has the trace already, which is named by its UUID and the number of its chunk; storing it again would count it twice.
    #[error("the trace {1} is in {path} already, and would be counted twice; name another store", path = .0.display())]
    AlreadyStored(PathBuf, String),
    /// The same trace was given twice, and would be counted twice.
    #[error(transparent)]
    GivenTwice(GivenTwice),
}

impl StoreError {
    pub(crate) fn io(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io(path, source)
    }

    pub(crate) fn parquet(path: &Path) -> impl FnOnce(ParquetError) -> Self {
        let path = path.to_owned();
        move |source| Self::Parquet(path, source)
    }
}
