//! Finds traces and stream files in directories.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::error::ReadError;
use crate::ring::RING_EXTENSION;

/// How deep below the given directory traces are looked for.
const MAX_DEPTH: usize = 16;
/// How many directories are looked at.
const MAX_DIRECTORIES: usize = 100_000;

/// The directories at and below `root` that hold a metadata file, in the order of their names.
pub(super) fn traces(root: &Path) -> Result<Vec<PathBuf>, ReadError> {
    let not_a_trace = |reason: &str| ReadError::NotATrace { path: root.to_owned(), reason: reason.to_owned() };
    let kind = fs::metadata(root).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => not_a_trace("there is no such directory"),
        _ => ReadError::io(root, error),
    })?;
    if !kind.is_dir() {
        return Err(not_a_trace("this is not a directory"));
    }
    let mut found = Vec::new();
    let mut seen = 0;
    let mut open = vec![(root.to_owned(), 0)];
    while let Some((directory, depth)) = open.pop() {
        seen += 1;
        if seen > MAX_DIRECTORIES {
            return Err(not_a_trace("there are too many directories below it"));
        }
        let mut inner = Vec::new();
        let entries = fs::read_dir(&directory).map_err(|error| ReadError::io(&directory, error))?;
        for entry in entries {
            let entry = entry.map_err(|error| ReadError::io(&directory, error))?;
            let kind = entry.file_type().map_err(|error| ReadError::io(&entry.path(), error))?;
            // Links to directories are not followed: they may lead back.
            if kind.is_dir() && depth < MAX_DEPTH {
                inner.push((entry.path(), depth + 1));
            } else if entry.path().extension().is_some_and(|extension| extension == RING_EXTENSION) {
                return Err(ReadError::Rings { path: directory });
            } else if entry.file_name() == "metadata" && !kind.is_dir() {
                found.push(directory.clone());
            }
        }
        // The stack gives back the last one first.
        inner.sort();
        open.extend(inner.into_iter().rev());
    }
    if found.is_empty() {
        return Err(not_a_trace("there is no file called `metadata` in it"));
    }
    found.sort();
    Ok(found)
}

/// The files of a trace directory that hold streams: all regular files but the metadata and hidden ones.
pub(crate) fn stream_files(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        let hidden = name.as_encoded_bytes().starts_with(b".");
        // A link that leads nowhere is kept: that it cannot be opened is told as damage.
        let regular = fs::metadata(entry.path()).map_or(true, |file| file.is_file());
        if !hidden && name != "metadata" && regular {
            files.push(entry.path());
        }
    }
    files.sort();
    Ok(files)
}
