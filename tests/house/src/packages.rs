//! The packages of the workspace, and of the one in `query/`, as listed by `cargo metadata`.

use crate::root;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::Command;

/// A member of the workspace.
pub struct Member {
    /// True if others may depend on it: `publish = false` is for examples, benches and tests.
    pub is_published: bool,
    /// The directory of its manifest.
    pub directory: PathBuf,
    /// The names of the members that it depends on, without dev-dependencies.
    pub on_members: BTreeSet<String>,
    /// The dependencies, on members and others, that do not depend on a feature.
    pub unconditional: BTreeSet<String>,
}

/// All packages of the workspace and their dependencies; and the members of the workspace in `query/`.
pub struct Packages(Value, Value);

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().map_or(&[], Vec::as_slice)
}

impl Packages {
    /// Runs cargo.
    ///
    /// # Panics
    ///
    /// If cargo fails.
    pub fn read() -> Self {
        let metadata = |directory: &str, more: &[&str]| {
            let mut command = Command::new(env!("CARGO"));
            command.args(["metadata", "--format-version=1", "--locked"]).args(more);
            let output = command.current_dir(root().join(directory)).output().expect("cargo can be run");
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            serde_json::from_slice(&output.stdout).expect("JSON")
        };
        // Fetches dependencies for other platforms if they are missing. The dependencies of `query/` are not needed.
        Self(metadata("", &[]), metadata("query", &["--no-deps"]))
    }

    fn with_id(&self, id: &str) -> &Value {
        let packages = [&self.0, &self.1].into_iter().flat_map(|workspace| list(workspace, "packages"));
        let found = packages.into_iter().find(|package| text(package, "id") == id);
        found.unwrap_or_else(|| panic!("{id} is no package"))
    }

    /// The members by their names.
    pub fn members(&self) -> BTreeMap<String, Member> {
        let ids = [&self.0, &self.1].into_iter().flat_map(|workspace| list(workspace, "workspace_members"));
        let ids = ids.filter_map(Value::as_str);
        let packages: Vec<_> = ids.map(|id| self.with_id(id)).collect();
        let names: BTreeSet<_> = packages.iter().map(|package| text(package, "name")).collect();
        let member = |package: &&Value| {
            let needed = list(package, "dependencies").iter().filter(|needed| text(needed, "kind") != "dev");
            let on_members = needed.clone().map(|needed| text(needed, "name")).filter(|name| names.contains(name));
            let unconditional = needed.clone().filter(|needed| needed["optional"] != true);
            Member {
                is_published: package["publish"].is_null(),
                directory: PathBuf::from(text(package, "manifest_path")).with_file_name(""),
                on_members: on_members.map(str::to_owned).collect(),
                unconditional: unconditional.map(|needed| text(needed, "name").to_owned()).collect(),
            }
        };
        packages.iter().map(|package| (text(package, "name").to_owned(), member(package))).collect()
    }

    /// Everything that a build of the package `name` compiles, for any target, without tests.
    pub fn tree(&self, name: &str) -> BTreeSet<String> {
        let mut seen = BTreeSet::new();
        let packages = list(&self.0, "packages").iter();
        let mut next: Vec<&str> =
            packages.filter(|package| text(package, "name") == name).map(|package| text(package, "id")).collect();
        while let Some(id) = next.pop() {
            if seen.insert(id) {
                let node = list(&self.0["resolve"], "nodes").iter().find(|node| text(node, "id") == id);
                let is_built = |edge: &&Value| list(edge, "dep_kinds").iter().any(|kind| text(kind, "kind") != "dev");
                let edges = node.map_or(&[][..], |node| list(node, "deps"));
                next.extend(edges.iter().filter(is_built).map(|edge| text(edge, "pkg")));
            }
        }
        seen.into_iter().map(|id| text(self.with_id(id), "name").to_owned()).collect()
    }
}

/// The packages, with their versions, compiled for this target by a program that depends on `package` with these features; without packages that run
/// only during the build.
///
/// # Panics
///
/// If cargo fails.
pub fn built_with(package: &str, features: &str) -> BTreeSet<String> {
    // The path of a member follows, or `(*)` after a package that was already listed.
    let name = |line: &str| line.split(" (").next().unwrap_or_default().to_owned();
    cargo_tree(package, features, "{p}").lines().map(name).collect()
}

/// The features with which a program that depends on `package` with `features` compiles each package, by the package's name.
///
/// # Panics
///
/// If cargo fails.
pub fn features_with(package: &str, features: &str) -> BTreeMap<String, BTreeSet<String>> {
    let name = |package: &str| package.split(' ').next().unwrap_or_default().to_owned();
    let split = |list: &str| list.split(" (").next().unwrap_or_default().split(',').map(str::to_owned).collect();
    let packages = cargo_tree(package, features, "{p}\t{f}");
    packages.lines().filter_map(|line| line.split_once('\t')).map(|(of, list)| (name(of), split(list))).collect()
}

fn cargo_tree(package: &str, features: &str, format: &str) -> String {
    let mut command = Command::new(env!("CARGO"));
    command.args(["tree", "--locked", "--edges", "normal", "--prefix", "none", "--format", format]);
    let output = command.args(["-p", package, "--features", features]).current_dir(root()).output();
    let output = output.expect("cargo can be run");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}
