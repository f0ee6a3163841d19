//! Input for the tests of the workspace's structure: its packages, and the modules of a crate with the paths between them.
#![forbid(unsafe_code)]

pub mod api;
pub mod circles;
pub mod modules;
pub mod packages;

use std::path::{Path, PathBuf};

/// The root of the repository.
///
/// # Panics
///
/// If this crate was moved out of it.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository")
}

/// All Rust files below a directory, sorted.
///
/// # Panics
///
/// If the directory cannot be read.
pub fn rust_files(directory: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display())) {
        let path = entry.expect("an entry of a directory").path();
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files.sort();
    files
}
