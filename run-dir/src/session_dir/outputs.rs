//! The lists of outputs next to the rings.

use super::lease::has_consumer;
use super::{OUTPUTS, RINGS, dead};
use crate::private_dir::PrivateDir;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// Maximum length of a list, in bytes.
const MAX_LIST: u64 = 1 << 20;

/// Returns the outputs in the lists in the directory of a session.
pub fn listed_outputs(session: &PrivateDir) -> Vec<PathBuf> {
    let Ok(rings) = session.open_subdir(RINGS) else { return Vec::new() };
    let names = rings.names().unwrap_or_default();
    let list = |name: &String| rings.open_subdir(name).ok()?.read_file(OUTPUTS, MAX_LIST).ok();
    names.iter().filter_map(list).flat_map(|list| paths(&list)).collect()
}

/// Returns the directory of a dead process in this session whose list contains `output`, or a directory above it.
pub fn rings_of_output(session: &PrivateDir, output: &Path) -> Option<PathBuf> {
    let rings = session.open_subdir(RINGS).ok()?;
    let dirs = dead::process_dirs(&rings).ok()?;
    let mut of_dead = dirs.filter(|(_, dir)| !dead::is_alive(dir) && !has_consumer(&rings, dir));
    let is_listed = |dir: &PrivateDir| {
        let list = dir.read_file(OUTPUTS, MAX_LIST).unwrap_or_default();
        paths(&list).iter().any(|path| output.starts_with(path.canonicalize().as_ref().unwrap_or(path)))
    };
    of_dead.find(|(_, dir)| is_listed(dir)).map(|(_, dir)| dir.path().to_owned())
}

/// Returns the files called `name` in the directories of processes, with the names of these directories.
pub fn beside_rings(session: &PrivateDir, name: &str) -> Vec<(String, Vec<u8>)> {
    let Ok(rings) = session.open_subdir(RINGS) else { return Vec::new() };
    let names = rings.names().unwrap_or_default().into_iter();
    let file = |process: &String| rings.open_subdir(process).ok()?.read_file(name, MAX_LIST).ok();
    names.filter_map(|process| file(&process).map(|bytes| (process, bytes))).collect()
}

/// Parses a list of lines `FORMAT PATH`, and returns the paths.
fn paths(list: &[u8]) -> Vec<PathBuf> {
    let path = |line: &[u8]| {
        let space = line.iter().position(|byte| *byte == b' ')?;
        Some(PathBuf::from(OsString::from_vec(line[space + 1..].to_vec()))).filter(|path| path.is_absolute())
    };
    list.split(|byte| *byte == b'\n').filter_map(path).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_without_an_absolute_path_are_left_out() {
        let paths = paths(b"ctf /a b/\xFF\n\nctf\nctf relative\ndt /x\n");
        let expected = [OsString::from_vec(b"/a b/\xFF".to_vec()), "/x".into()];
        assert_eq!(paths, expected.map(PathBuf::from));
    }
}
