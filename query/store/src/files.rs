//! The files of a store, by path.

use std::path::PathBuf;

/// A Parquet file of a store.
#[derive(Debug)]
pub(crate) struct PartFile {
    pub(crate) path: PathBuf,
    pub(crate) bytes: u64,
}

/// The Parquet files of a store, grouped by directory. Directories and files are sorted by name.
pub(crate) type Parts = Vec<(PathBuf, Vec<PartFile>)>;
