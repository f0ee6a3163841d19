//! Looks through directories, and those below them.

use crate::error::ReadError;
use std::fs::{self, DirEntry, FileType};
use std::io;
use std::path::{Path, PathBuf};

/// How many directories are looked at.
const MAX_DIRECTORIES: usize = 100_000;

/// What a directory is to the one who looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Visited {
    /// What is looked for; there may be more below it.
    Found,
    /// What is looked for; what is below it is part of it.
    FoundWhole,
    /// Not what is looked for.
    Other,
}

/// The directories at and below `root`, at most `depth` levels, that `visit` finds by their entries; in the order of their names.
///
/// # Errors
///
/// What `wrong` makes of the reason if `root` is no directory or there are too many; what the operating system or `visit` says.
pub(crate) fn find<E: From<ReadError>>(
    root: &Path,
    depth: usize,
    wrong: impl Fn(&str) -> E,
    visit: impl Fn(&Path, &[(DirEntry, FileType)]) -> Result<Visited, E>,
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
        if visited != Visited::FoundWhole && level < depth {
            // Links to directories are not followed: they may lead back.
            let inner = entries.iter().filter(|(_, kind)| kind.is_dir());
            open.extend(inner.map(|(entry, _)| (entry.path(), level + 1)));
        }
        if visited != Visited::Other {
            found.push(directory);
        }
    }
    found.sort();
    Ok(found)
}
