//! Finds traces in directories.

use std::path::{Path, PathBuf};

use crate::directories::{self, DirectoryMatch};
use crate::error::ReadError;
use crate::ring::RING_EXTENSION;

/// Maximum depth of the search below the given directory.
const MAX_DEPTH: usize = 16;

/// The directories at and below `root` that hold a metadata file, in the order of their names.
pub(crate) fn traces(root: &Path) -> Result<Vec<PathBuf>, ReadError> {
    let not_a_trace = |reason: &str| ReadError::NotATrace { path: root.to_owned(), reason: reason.to_owned() };
    let found = directories::find(root, MAX_DEPTH, not_a_trace, |directory, entries| {
        let mut files = entries.iter().filter(|(_, kind)| !kind.is_dir()).map(|(entry, _)| entry);
        if files.clone().any(|file| file.path().extension().is_some_and(|extension| extension == RING_EXTENSION)) {
            return Err(ReadError::Rings(directory.to_owned()));
        }
        Ok(if files.any(|file| file.file_name() == "metadata") { DirectoryMatch::Found } else { DirectoryMatch::Other })
    })?;
    if found.is_empty() {
        return Err(not_a_trace("there is no file called `metadata` in it"));
    }
    Ok(found)
}
