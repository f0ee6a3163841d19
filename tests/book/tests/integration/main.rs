//! Checks of the Markdown files of the repository.

#![forbid(unsafe_code)]

mod links;

use std::fs;
use std::path::{Path, PathBuf};
use tracepoint_book::figures;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository")
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("read {path}: {error}"))
}

#[test]
fn the_readme_has_the_figures_of_the_costs_page() {
    let readme = read("README.md");
    let costs = read("docs/costs.md");
    let expected = figures::put(&readme, &costs).expect("both files have their tables");
    assert_eq!(readme, expected, "README.md is out of date: run `cargo run -p tracepoint-book --bin figures`");
    let expected = figures::put_by_processor(&costs).expect("the page has its tables");
    assert_eq!(costs, expected, "docs/costs.md is out of date: run `cargo run -p tracepoint-book --bin figures`");
}

#[test]
fn the_readme_is_short() {
    let shown = read("README.md").lines().filter(|line| !line.starts_with("<!-- ")).count();
    assert!(shown <= 120, "README.md has more than 120 lines");
}

#[test]
fn every_page_is_in_the_summary() {
    let summary = read("docs/SUMMARY.md");
    for entry in fs::read_dir(root().join("docs")).expect("docs/") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("an entry has a name").to_string_lossy();
        if path.extension().is_some_and(|extension| extension == "md") && name != "SUMMARY.md" {
            assert!(summary.contains(&format!("({name})")), "docs/{name} is not in docs/SUMMARY.md");
        }
    }
}

#[test]
fn every_page_with_rust_is_compiled() {
    let compiled = read("tests/book/src/lib.rs");
    for entry in fs::read_dir(root().join("docs")).expect("docs/") {
        let name = entry.expect("an entry").file_name().into_string().expect("a name in UTF-8");
        let has_rust =
            || read(&format!("docs/{name}")).lines().any(|line| line == "```rust" || line == "```rust,no_run");
        if Path::new(&name).extension().is_some_and(|extension| extension == "md") && has_rust() {
            assert!(
                compiled.contains(&format!("\"docs/{name}\"")),
                "tests/book/src/lib.rs does not compile docs/{name}"
            );
        }
    }
}
