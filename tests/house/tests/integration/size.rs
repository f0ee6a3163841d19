//! The core stays small enough to be read.

use tracepoint_house::{root, rust_files};

/// Maximum number of Rust lines in `core/src`. Each architecture with patched sites takes 200 of them, of which a reader needs one; sites
/// that are not patched at run time take 150.
const MAX: usize = 5600;

#[test]
fn the_core_has_fewer_lines_than_its_maximum() {
    let files = rust_files(&root().join("core/src"));
    let lines: usize = files.iter().map(|file| std::fs::read_to_string(file).expect("a file").lines().count()).sum();
    assert!(lines < MAX, "core/src has {lines} lines: {MAX} or more");
}
