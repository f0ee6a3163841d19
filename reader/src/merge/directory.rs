//! Finds traces and stream files in directories.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::directories::{self, Visited};
use crate::error::ReadError;
use crate::ring::RING_EXTENSION;

/// How deep below the given directory traces are searched.
const MAX_DEPTH: usize = 16;

/// The directories at and below `root` that hold a metadata file, in the order of their names.
pub(crate) fn traces(root: &Path) -> Result<Vec<PathBuf>, ReadError> {
    let not_a_trace = |reason: &str| ReadError::NotATrace { path: root.to_owned(), reason: reason.to_owned() };
    let found = directories::find(root, MAX_DEPTH, not_a_trace, |directory, entries| {
        let mut files = entries.iter().filter(|(_, kind)| !kind.is_dir()).map(|(entry, _)| entry);
        if files.clone().any(|file| file.path().extension().is_some_and(|extension| extension == RING_EXTENSION)) {
            return Err(ReadError::Rings { path: directory.to_owned() });
        }
        Ok(if files.any(|file| file.file_name() == "metadata") { Visited::Found } else { Visited::Other })
    })?;
    if found.is_empty() {
        return Err(not_a_trace("there is no file called `metadata` in it"));
    }
    Ok(found)
}

/// The files of a trace directory that hold streams: all regular files but the metadata and hidden ones.
///
/// # Errors
///
/// If the directory cannot be read.
pub fn stream_files(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        let hidden = name.as_encoded_bytes().starts_with(b".");
        // A dangling link is kept, and reported as damage.
        let regular = fs::metadata(entry.path()).map_or(true, |file| file.is_file());
        if !hidden && name != "metadata" && regular {
            files.push(entry.path());
        }
    }
    files.sort();
    Ok(files)
}
