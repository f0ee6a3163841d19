//! What is in a store, found by its directories.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::StoreError;

/// A file of a store.
#[derive(Debug)]
pub(crate) struct PartFile {
    pub(crate) path: PathBuf,
    pub(crate) bytes: u64,
}

/// The Parquet files below a directory, by the directories that they are in; both in the order of their names. Links are not followed.
pub(crate) fn parts(root: &Path) -> Result<Vec<(PathBuf, Vec<PartFile>)>, StoreError> {
    let (mut found, mut directories) = (Vec::new(), vec![root.to_owned()]);
    while let Some(directory) = directories.pop() {
        let mut files = Vec::new();
        for entry in fs::read_dir(&directory).map_err(StoreError::io(&directory))? {
            let entry = entry.map_err(StoreError::io(&directory))?;
            let (path, name) = (entry.path(), entry.file_name());
            let metadata = fs::symlink_metadata(&path).map_err(StoreError::io(&path))?;
            let is_hidden = name.as_encoded_bytes().starts_with(b".");
            if metadata.is_dir() && !is_hidden {
                directories.push(path);
            } else if metadata.is_file() && path.extension().is_some_and(|extension| extension == "parquet") {
                files.push(PartFile { path, bytes: metadata.len() });
            }
        }
        if !files.is_empty() {
            files.sort_by(|a, b| a.path.cmp(&b.path));
            found.push((directory, files));
        }
    }
    found.sort_by(|(a, _), (b, _)| a.cmp(b));
    Ok(found)
}
