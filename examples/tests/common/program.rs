//! The examples as programs.

use super::tree::Tree;
use escargot::CargoBuild;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Path of the example called `name`, built as the tests are, with the features of the workspace, so that nothing is built twice.
pub(crate) fn built(name: &str) -> PathBuf {
    run(build().example(name))
}

/// Path of `tracectl`, built in the same way: with an example, because a build of programs alone has other features of its dependencies, and
/// compiles all of them again.
pub(crate) fn tracectl() -> PathBuf {
    let example = run(build().args(["--bin", "tracectl"]).example("http"));
    let profile = example.parent().and_then(Path::parent).expect("it is in a directory of examples");
    profile.join("tracectl")
}

fn build() -> CargoBuild {
    let build = CargoBuild::new().manifest_path(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")).arg("--workspace");
    if cfg!(debug_assertions) { build } else { build.release() }
}

fn run(build: CargoBuild) -> PathBuf {
    build.run().expect("it builds").path().to_owned()
}

/// Copies a program to a place where every user can run it.
pub(crate) fn copied(program: &Path, tree: &Tree) -> PathBuf {
    let copy = tree.place.path().join("program");
    fs::copy(program, &copy).unwrap();
    fs::set_permissions(&copy, Permissions::from_mode(0o755)).unwrap();
    copy
}
