//! The files of a store, found by walking its directories.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::StoreError;
use crate::files::{PartFile, Parts};

/// Lists the Parquet files of a store. Symbolic links are not followed.
pub(super) fn parts(root: &Path) -> Result<Parts, StoreError> {
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
                files.push(PartFile { path: relative(root, &path), bytes: metadata.len() });
            }
        }
        if !files.is_empty() {
            files.sort_by(|a, b| a.path.cmp(&b.path));
            found.push((relative(root, &directory), files));
        }
    }
    found.sort_by(|(a, _), (b, _)| a.cmp(b));
    Ok(found)
}

fn relative(root: &Path, path: &Path) -> PathBuf {
    path.strip_prefix(root).unwrap_or(path).to_owned()
}
