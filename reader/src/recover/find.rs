//! Finds the directories of processes.

use super::RecoverError;
use crate::directories::{self, DirectoryMatch};
use crate::error::ReadError;
use crate::ring::RING_EXTENSION;
use std::collections::{BTreeMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};

/// Maximum number of rings of a channel that are reported as missing one by one.
const MAX_MISSING: usize = 100;
/// Maximum depth of the search below the given directory: `sessions/NAME/rings/PID-START` in the run directory.
const MAX_DEPTH: usize = 4;

/// The directories of processes at and below `root`, sorted by name.
pub(super) fn processes(root: &Path) -> Result<Vec<PathBuf>, RecoverError> {
    let no_rings = |reason: &str| RecoverError::NoRings { path: root.to_owned(), reason: reason.to_owned() };
    let found = directories::find(root, MAX_DEPTH, no_rings, |_, entries| {
        let has = |name: &str| entries.iter().any(|(entry, kind)| kind.is_file() && entry.file_name() == name);
        let has_rings = entries.iter().any(|(entry, kind)| kind.is_file() && is_ring(&entry.path()));
        // If all rings are gone, the outputs may still have packets.
        Ok(if has_rings || (has("metadata") && has("outputs")) {
            DirectoryMatch::FoundWhole
        } else {
            DirectoryMatch::Other
        })
    })?;
    if found.is_empty() {
        return Err(no_rings("there are no ring files in it"));
    }
    Ok(found)
}

/// The ring files of a process, sorted by name, with numbers by value. The account of threads without a ring comes last.
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

/// The missing rings, by class and number. A process makes the rings of a channel one after the other and removes none, so each
/// number below the highest existing one has a ring, and so has each number below the count it has `made`, where known. Incomplete files are not
/// rings.
pub(super) fn missing(
    paths: &[PathBuf],
    made: BTreeMap<u32, u64>,
    is_not_begun: impl Fn(&Path) -> bool,
) -> Vec<(u32, u64)> {
    let number = |path: &PathBuf| -> Option<(u32, u64)> {
        let (class, number) = path.file_stem()?.to_str()?.split_once('-')?;
        Some((class.parse().ok()?, number.parse().ok()?))
    };
    let begun: HashSet<(u32, u64)> = paths.iter().filter(|path| !is_not_begun(path)).filter_map(number).collect();
    let mut ends = made;
    for (class, number) in &begun {
        let end = ends.entry(*class).or_default();
        *end = number.saturating_add(1).max(*end);
    }
    let mut missing = Vec::new();
    for (class, end) in ends {
        let gone = (0..end).map(|number| (class, number)).filter(|ring| !begun.contains(ring));
        missing.extend(gone.take(MAX_MISSING));
    }
    missing
}

fn is_ring(path: &Path) -> bool {
    path.extension() == Some(OsStr::new(RING_EXTENSION))
}

/// The output directory of each process: `out` itself for a single process, directories below it for several.
pub(super) fn targets(processes: &[PathBuf], out: &Path) -> Vec<PathBuf> {
    if processes.len() == 1 {
        return vec![out.to_owned()];
    }
    let name = |path: &Path| path.file_name().map(OsStr::to_owned).unwrap_or_default();
    // A process in several sessions has the same name in each.
    let names: HashSet<OsString> = processes.iter().map(|path| name(path)).collect();
    let unique = names.len() == processes.len();
    let session = |path: &Path| path.ancestors().nth(2).map(name).unwrap_or_default();
    processes
        .iter()
        .map(|path| if unique { out.join(name(path)) } else { out.join(session(path)).join(name(path)) })
        .collect()
}
