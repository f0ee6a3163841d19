//! Searches directory trees, and lists the files of a trace.

use crate::error::ReadError;
use std::fs::{self, DirEntry, FileType};
use std::io;
use std::path::{Path, PathBuf};

/// Maximum number of directories searched.
const MAX_DIRECTORIES: usize = 100_000;

/// The result of visiting a directory in a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DirectoryMatch {
    /// It matches; directories below it may match too.
    Found,
    /// It matches, and includes everything below it.
    FoundWhole,
    /// It does not match.
    Other,
}

/// Returns the directories at and below `root`, up to `depth` levels deep, for which `visit` returns a match, sorted by name.
///
/// # Errors
///
/// The result of `wrong` if `root` is not a directory or there are too many; errors of the system and of `visit`.
pub(crate) fn find<E: From<ReadError>>(
    root: &Path,
    depth: usize,
    wrong: impl Fn(&str) -> E,
    visit: impl Fn(&Path, &[(DirEntry, FileType)]) -> Result<DirectoryMatch, E>,
) -> Result<Vec<PathBuf>, E> {
    let kind = fs::metadata(root).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => wrong("there is no such directory"),
        _ => ReadError::io(root, error).into(),
    })?;
    if !kind.is_dir() {
        return Err(wrong("this is not a directory"));
    }
    let mut found = Vec::new();
    let mut seen = 0;
    let mut open = vec![(root.to_owned(), 0)];
    while let Some((directory, level)) = open.pop() {
        seen += 1;
        if seen > MAX_DIRECTORIES {
            return Err(wrong("there are too many directories below it"));
        }
        let mut entries = Vec::new();
        for entry in fs::read_dir(&directory).map_err(|error| ReadError::io(&directory, error))? {
            let entry = entry.map_err(|error| ReadError::io(&directory, error))?;
            let kind = entry.file_type().map_err(|error| ReadError::io(&entry.path(), error))?;
            entries.push((entry, kind));
        }
        let visited = visit(&directory, &entries)?;
        if visited != DirectoryMatch::FoundWhole && level < depth {
            // Links to directories are not followed, because they may form cycles.
            let inner = entries.iter().filter(|(_, kind)| kind.is_dir());
            open.extend(inner.map(|(entry, _)| (entry.path(), level + 1)));
        }
        if visited != DirectoryMatch::Other {
            found.push(directory);
        }
    }
    found.sort();
    Ok(found)
}

/// The stream files of a trace directory: all regular files except the metadata and hidden files.
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
