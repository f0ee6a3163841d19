//! Finds the directories of processes.

use super::RecoverError;
use crate::error::ReadError;
use crate::ring::RING_EXTENSION;
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// How deep below the given directory rings are looked for: `sessions/NAME/rings/PID-START` in the run directory.
const MAX_DEPTH: usize = 4;
/// How many directories are looked at.
const MAX_DIRECTORIES: usize = 100_000;

/// The directories at and below `root` that hold ring files, in the order of their names.
pub(super) fn processes(root: &Path) -> Result<Vec<PathBuf>, RecoverError> {
    let no_rings = |reason: &str| RecoverError::NoRings { path: root.to_owned(), reason: reason.to_owned() };
    let kind = fs::metadata(root).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => no_rings("there is no such directory"),
        _ => ReadError::io(root, error).into(),
    })?;
    if !kind.is_dir() {
        return Err(no_rings("this is not a directory"));
    }
    let mut found = Vec::new();
    let mut seen = 0;
    let mut open = vec![(root.to_owned(), 0)];
    while let Some((directory, depth)) = open.pop() {
        seen += 1;
        if seen > MAX_DIRECTORIES {
            return Err(no_rings("there are too many directories below it"));
        }
        let mut inner = Vec::new();
        let mut has_rings = false;
        for entry in fs::read_dir(&directory).map_err(|error| ReadError::io(&directory, error))? {
            let entry = entry.map_err(|error| ReadError::io(&directory, error))?;
            let kind = entry.file_type().map_err(|error| ReadError::io(&entry.path(), error))?;
            has_rings |= kind.is_file() && is_ring(&entry.path());
            // Links to directories are not followed: they may lead back.
            if kind.is_dir() && depth < MAX_DEPTH {
                inner.push((entry.path(), depth + 1));
            }
        }
        if has_rings {
            found.push(directory);
        } else {
            open.append(&mut inner);
        }
    }
    if found.is_empty() {
        return Err(no_rings("there are no ring files in it"));
    }
    found.sort();
    Ok(found)
}

/// The ring files of a process: in the order of their names, numbers by their value, the orphans' last.
pub(super) fn rings(directory: &Path) -> Result<Vec<PathBuf>, ReadError> {
    let failed = |error| ReadError::io(directory, error);
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if is_ring(&path) {
            found.push(path);
        }
    }
    found.sort_by_cached_key(|path| {
        let name = path.file_stem().unwrap_or_default().to_owned();
        (name.as_encoded_bytes().ends_with(b"-orphans"), name.len(), name)
    });
    Ok(found)
}

fn is_ring(path: &Path) -> bool {
    path.extension() == Some(OsStr::new(RING_EXTENSION))
}

/// Where what is recovered of each process goes: a single one to `out` itself, several below it by their names.
pub(super) fn targets(processes: &[PathBuf], out: &Path) -> Vec<PathBuf> {
    if processes.len() == 1 {
        return vec![out.to_owned()];
    }
    let name = |path: &Path| path.file_name().map(OsStr::to_owned).unwrap_or_default();
    // A process in several sessions has the same name in each.
    let names: BTreeSet<OsString> = processes.iter().map(|path| name(path)).collect();
    let unique = names.len() == processes.len();
    let session = |path: &Path| path.ancestors().nth(2).map(name).unwrap_or_default();
    processes
        .iter()
        .map(|path| if unique { out.join(name(path)) } else { out.join(session(path)).join(name(path)) })
        .collect()
}
