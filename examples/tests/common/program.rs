//! The examples as programs.

use super::tree::Tree;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Where the example called `name` is, built as the tests are: with the features of the workspace, so that nothing is built twice.
pub(crate) fn built(name: &str) -> PathBuf {
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    let build = escargot::CargoBuild::new().manifest_path(manifest).arg("--workspace").example(name);
    let build = if cfg!(debug_assertions) { build } else { build.release() };
    build.run().expect("the example builds").path().to_owned()
}

/// A copy where every user can run it.
pub(crate) fn copied(program: &Path, tree: &Tree) -> PathBuf {
    let copy = tree.place.path().join("program");
    fs::copy(program, &copy).unwrap();
    fs::set_permissions(&copy, Permissions::from_mode(0o755)).unwrap();
    copy
}
