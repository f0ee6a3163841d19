//! The files of a store, by their paths in it.

use std::path::PathBuf;

/// A Parquet file of a store.
#[derive(Debug)]
pub(crate) struct PartFile {
    pub(crate) path: PathBuf,
    pub(crate) bytes: u64,
}

/// The Parquet files of a store, by the directories that they are in; both in the order of their names.
pub(crate) type Parts = Vec<(PathBuf, Vec<PartFile>)>;
