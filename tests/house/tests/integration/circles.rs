//! A crate has no cycles of files, except between a module and its descendants.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;
use tracepoint_house::circles::circles;
use tracepoint_house::modules::{Modules, Name};
use tracepoint_house::packages::Packages;

/// The cycles of a crate, each with the paths that form it.
fn circles_of(source: &Path) -> Vec<String> {
    let spelt = |name: &Name| if name.is_empty() { "crate".to_owned() } else { name.join("::") };
    let edges = Modules::read(source).edges();
    let describe = |circle: BTreeSet<Name>| {
        let mut text = String::new();
        for from in &circle {
            for to in edges[from].intersection(&circle) {
                let _ = write!(text, "\n    {} → {}", spelt(from), spelt(to));
            }
        }
        text
    };
    circles(&edges).into_iter().map(describe).collect()
}

#[test]
fn no_crate_has_a_circle_of_files() {
    let mut found = String::new();
    for (name, member) in Packages::read().members().into_iter().filter(|(_, member)| member.is_published) {
        for circle in circles_of(&member.directory.join("src")) {
            let _ = write!(found, "\n  {name}:{circle}");
        }
    }
    assert!(found.is_empty(), "files that depend on each other:{found}");
}

/// The circles of the modules directly below the root of a crate, each with the files below it.
fn circles_of_folders(source: &Path) -> Vec<BTreeSet<String>> {
    let mut edges: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (from, targets) in Modules::read(source).edges() {
        let Some(from) = from.first() else { continue };
        let others = targets.iter().filter_map(|target| target.first()).filter(|target| *target != from);
        edges.entry(from.clone()).or_default().extend(others.cloned());
    }
    circles(&edges)
}

#[test]
fn no_crate_has_a_circle_of_folders() {
    for (name, member) in Packages::read().members().into_iter().filter(|(_, member)| member.is_published) {
        let found = circles_of_folders(&member.directory.join("src"));
        assert!(found.is_empty(), "folders of {name} that depend on each other: {found:?}");
    }
}

/// A crate of a few files in a temporary directory.
fn circles_in(files: &[(&str, &str)]) -> usize {
    let place = tempfile::tempdir().expect("a temporary directory");
    for (name, text) in files {
        let path = place.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a directory")).expect("it can be made");
        std::fs::write(path, text).expect("it can be written");
    }
    circles_of(place.path()).len()
}

#[test]
fn circles_are_found_in_every_form() {
    for (a, b) in [
        ("use crate::b::B;", "use super::a::A;"),
        ("fn f() { crate::b::g(); }", "use crate::{a::{self, A}, c};"),
        ("use crate::B;", "fn f(a: crate::A) {}"),
        ("macro_rules! m { () => { $crate::b::g() } }", "fn f() { m!(super::a::f()); }"),
        ("pub use crate::b::*;", "mod inner { use super::super::a::A; }"),
    ] {
        let root = "mod a; mod b; mod c; pub use a::A; pub use b::B;";
        assert_eq!(circles_in(&[("lib.rs", root), ("a.rs", a), ("b.rs", b), ("c.rs", "")]), 1, "{a} {b}");
    }
}

#[test]
fn acyclic_files_are_accepted() {
    let root = ("lib.rs", "mod a; mod b; pub use a::A;");
    // A parent and its child, a name of the standard library, and tests.
    assert_eq!(circles_in(&[root, ("a.rs", "mod c; use c::C;"), ("a/c.rs", "use super::A;"), ("b.rs", "")]), 0);
    assert_eq!(circles_in(&[root, ("a.rs", "use crate::b::B;"), ("b.rs", "use std::a::A;")]), 0);
    assert_eq!(
        circles_in(&[root, ("a.rs", "use crate::b::B;"), ("b.rs", "#[cfg(test)] mod tests { use crate::A; }")]),
        0
    );
    let files =
        [root, ("a.rs", "use crate::b::B;"), ("b.rs", "#[cfg(test)] mod tests;"), ("b/tests.rs", "use crate::A;")];
    assert_eq!(circles_in(&files), 0);
}
